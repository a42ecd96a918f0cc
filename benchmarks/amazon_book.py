"""Closed forms on 88 % of Amazon-Book's training pairs, each by its best setting on validation.

python -m benchmarks.amazon_book --data $LTOCF_DATA/amazon-book-88 --results runs/amazon-book.jsonl

The folder holds 88.4 % of the published training pairs and the whole test file. Pairs that train
lacks can be neither learned nor left out of a list, so figures are, in all likelihood, below those
of the same model on all pairs: they must not stand in one column with published ones. The order of
lines means nothing there, and test pairs of items that train lacks count as misses.

Settings are chosen on a tenth of the training pairs at random, by NDCG@20 of a sample of people;
each model is then fitted to all training pairs and tested once. What --results has is not computed
again, so it may be stopped at any time.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import machine, recall_and_ndcg
from ltocf.config import TrainConfig
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.sources.catalog import load_dataset
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.machine.threads import use_threads
from ltocf.models import build_model
from ltocf.ranking.metrics import Metrics, evaluate, testable_users
from ltocf.training.protocol import with_validation

SAMPLE = 3000  # people who judge a setting
PUBLISHED = {"gfcf": (0.0710, 0.0584), "itemknn": (0.0736, 0.0606)}  # on all training pairs
MODELS: dict[str, list[dict[str, Any]]] = {
    "popularity": [{}],
    "gfcf": [{"ideal_weight": 0.0}],  # the linear filter alone: its authors' choice
    "itemknn": [{"neighbours": n, "shrinkage": s} for n in (20, 100) for s in (0.0, 10.0)],
    "rp3beta": [{"alpha": a, "beta": b, "neighbours": 200} for a in (0.8, 1.1) for b in (0.2, 0.4)],
    "turbocf": [
        {"power": 1.0, "alpha": alpha, "filter": filter}
        for alpha in (0.5, 0.6)
        for filter in ("linear", "second")
    ],
    "sparse_ease": [{"neighbours": 100, "l2": l2} for l2 in (30.0, 100.0)],
}


def main() -> None:
    arguments = parse()
    use_threads(arguments.threads)
    split = load_dataset(arguments.data, unknown="keep", ordered=False).split
    held = with_validation(split, TrainConfig(validation_cut="random"), arguments.seed)
    judges = testable_users(held.valid, SAMPLE, arguments.seed)
    found = read(arguments.results)
    for name in arguments.models:
        choices = MODELS[name]
        for options in choices if len(choices) > 1 else []:
            key = f"{name} {json.dumps(options, sort_keys=True)}"
            if key not in found:
                metrics, seconds = measure(name, options, held.train, held.valid, judges)
                keep(found, arguments.results, key, metrics, seconds)
        tried = [(found.get(f"{name} {json.dumps(o, sort_keys=True)}"), o) for o in choices]
        best = max(tried, key=lambda one: one[0]["ndcg@20"] if one[0] else 0.0)[1]
        if f"{name}, test" not in found:
            metrics, seconds = measure(name, best, split.train, split.test, None)
            keep(found, arguments.results, f"{name}, test", metrics | {"settings": best}, seconds)
    tested = {name: found[f"{name}, test"] for name in arguments.models}
    result = {
        "data": f"{Path(arguments.data).name}: 88 % of the training pairs",
        "machine": machine(),
        "models": tested,
        "published on all pairs": {n: PUBLISHED[n] for n in tested if n in PUBLISHED},
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="the folder with train.txt and test.txt")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--results", type=Path, help="where figures are kept, a line each")
    parser.add_argument("--threads", type=int, help="default: one for each core")
    parser.add_argument("--seed", type=int, default=0, help="of the validation cut; default: 0")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


def measure(
    name: str,
    options: dict[str, Any],
    train: Interactions,
    wanted: Interactions,
    users: Rows | None,
) -> tuple[Metrics, float]:
    """The metrics of a model fitted to `train`, and the seconds of fit and test."""
    started = time.perf_counter()
    model = build_model(BipartiteGraph(train), name, options)
    model.initialise_(seed=0)
    metrics = evaluate(model.scorer(), wanted, train, users=users)
    return recall_and_ndcg(metrics), time.perf_counter() - started


def read(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row.pop("what"): row for row in rows}


def keep(
    found: dict[str, Any], path: Path | None, what: str, values: dict[str, Any], seconds: float
) -> None:
    found[what] = values | {"seconds": round(seconds, 1)}
    row = {"what": what} | found[what]
    print(json.dumps(row), flush=True)
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
