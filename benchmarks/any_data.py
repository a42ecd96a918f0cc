"""What no settings at all reach: the defaults and `auto`, beside popularity and a closed form.

python -m benchmarks.any_data --data gowalla yelp2018 $LTOCF_DATA/ml-1m town --budget 1800 --json
python -m benchmarks.any_data --data $LTOCF_DATA/ml-1m --starts 1 2 4 6 --json

Validation chooses everything; the test set is looked at once for each row. With --starts, LT-OCF
begins with each of these end times instead, with fixed times and with times that learn on held-out
pairs, and is judged on validation: the test set is not looked at.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import machine, recall_and_ndcg
from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.sources.catalog import load_dataset
from ltocf.ranking.metrics import evaluate
from ltocf.recommend.recommender import Recommender
from ltocf.runs.settings import make_config
from ltocf.training.fitting import fit

CLOSED = ("popularity", "gfcf")


def main() -> None:
    arguments = parse()
    found: dict[str, Any] = {}
    for data in arguments.data:
        dataset = load_dataset(data)
        name = Path(data).name
        found[name] = (
            from_starts(dataset, arguments.starts, arguments.seed)
            if arguments.starts
            else without_settings(dataset, arguments.budget, arguments.seed)
        )
    result = {"machine": machine(), "ratio": smallest_ratio(found), "data": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def without_settings(dataset: Dataset, budget: float, seed: int) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for model in (*CLOSED, "ltocf", *(["auto"] if budget else [])):
        started = time.perf_counter()
        recommender = Recommender(model, seed=seed, budget=budget).fit(dataset)
        seconds = time.perf_counter() - started
        rows[model] = recall_and_ndcg(recommender.evaluate()) | {"seconds": seconds}
        print(f"{dataset.name} {model}: {rows[model]}", flush=True)
    return rows


def from_starts(dataset: Dataset, starts: list[float], seed: int) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for times in ("held-out", False):
        for start in starts:
            settings: dict[str, object] = {"end_time": start, "learn_times": times, "refit": False}
            config: RunConfig = make_config({}, settings | {"seed": seed})
            fitted = fit(dataset, config)
            split = fitted.dataset.split
            metrics = evaluate(fitted.model.scorer(), split.valid, split.train)
            label = f"{'learned' if times else 'fixed'} from {start:g}"
            rows[label] = recall_and_ndcg(metrics) | {"times": fitted.model.extracted_times()}
            print(f"{dataset.name} {label}: {rows[label]}", flush=True)
    return rows


def smallest_ratio(found: dict[str, Any]) -> float | None:
    """Of the defaults to GF-CF, or of the worst learned start to the best, over the data sets."""
    ratios = []
    for rows in found.values():
        if "ltocf" in rows:
            ratios.append(rows["ltocf"]["recall@20"] / rows["gfcf"]["recall@20"])
        else:
            learned = [row["recall@20"] for name, row in rows.items() if "learned" in name]
            ratios.append(min(learned) / max(learned))
    return min(ratios, default=None)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=["town"], help="names or directories")
    parser.add_argument("--budget", type=float, default=1800, help="of auto; 0 leaves it out")
    parser.add_argument("--starts", nargs="+", type=float, help="end times to begin with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
