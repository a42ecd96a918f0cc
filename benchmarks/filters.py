"""Accuracy, seconds and memory of every closed form, beside the figures published for it.

python -m benchmarks.filters --data $LTOCF_DATA/gowalla --json
python -m benchmarks.filters --data yelp2018 --models gfcf bspm

Each is fitted on all of train with the settings of configs/DATA-MODEL.toml (defaults where there
is none) and tested once on every user. The singular vectors are computed first, and timed by
themselves, unless the cache has them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import machine, peak_extra_bytes
from ltocf.config import RunConfig
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.spectrum import singular_vectors
from ltocf.models import build_model
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.runs.settings import make_config, read_config

CONFIGS = Path(__file__).parents[1] / "src" / "ltocf" / "configs"
MODELS = (
    "gfcf",
    "bspm",
    "chebycf",
    "turbocf",
    "sparse_ease",
    "rp3beta",
    "itemknn",
    "blend",
    "ease",
)
LARGEST_RANK = 512
PUBLISHED = {  # Recall@20, NDCG@20
    ("gowalla", "gfcf"): (0.1849, 0.1518),
    ("gowalla", "bspm"): (0.1920, 0.1597),
    ("gowalla", "chebycf"): (0.1941, 0.1616),
    ("gowalla", "ease"): (0.1765, 0.1467),
    ("gowalla", "blend"): (0.1941, 0.1617),  # the best of others
    ("yelp2018", "gfcf"): (0.0697, 0.0571),
    ("yelp2018", "bspm"): (0.0720, 0.0593),
    ("yelp2018", "turbocf"): (0.0693, 0.0574),
    ("yelp2018", "ease"): (0.0657, 0.0552),
    ("yelp2018", "blend"): (0.0744, 0.0617),  # the best of others
}


def main() -> None:
    arguments = parse()
    data, split = Path(arguments.data).name, load_dataset(arguments.data).split
    graph = BipartiteGraph(split.train)
    start = time.perf_counter()
    singular_vectors(graph, LARGEST_RANK)
    spectrum = time.perf_counter() - start
    rows = []
    for name in arguments.models:
        rows.append(measure(data, name, graph, split))
        print(describe(rows[-1]), flush=True)
    result = {
        "data": data,
        "machine": machine(),
        "singular_vectors_seconds": round(spectrum, 1),
        "models": rows,
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


def settings(data: str, name: str) -> RunConfig:
    path = CONFIGS / f"{data}-{name}.toml"
    return read_config(path) if path.exists() else make_config({"model": {"name": name}})


def measure(data: str, name: str, graph: BipartiteGraph, split: Split) -> dict[str, Any]:
    model = build_model(graph, name, settings(data, name).model_options)
    seconds: dict[str, float] = {}
    metrics: Metrics = {}

    def run() -> None:
        start, processor = time.perf_counter(), time.process_time()
        model.initialise_(seed=0)
        seconds["fit"] = time.perf_counter() - start
        metrics.update(evaluate(model.scorer(), split.test, split.seen))
        seconds["fit and test"] = time.perf_counter() - start
        seconds["processor"] = time.process_time() - processor  # on a busy machine, the fairer one

    peak = peak_extra_bytes(run)
    row: dict[str, Any] = {
        "model": name,
        "recall@20": round(metrics["recall@20"], 5),
        "ndcg@20": round(metrics["ndcg@20"], 5),
        "fit_seconds": round(seconds["fit"], 1),
        "fit_and_test_seconds": round(seconds["fit and test"], 1),
        "processor_seconds": round(seconds["processor"], 1),
        "peak_gigabytes": round(peak / 1e9, 2),
    }
    if (data, name) in PUBLISHED:
        recall, ndcg = PUBLISHED[data, name]
        row |= {"published": [recall, ndcg], "ratio": round(metrics["recall@20"] / recall, 4)}
    return row


def describe(row: dict[str, Any]) -> str:
    return (
        f"{row['model']:8} recall@20 {row['recall@20']:.4f}  ndcg@20 {row['ndcg@20']:.4f}  "
        f"{row['fit_and_test_seconds']:6.1f} s  {row['peak_gigabytes']:.2f} GB"
    )


if __name__ == "__main__":
    main()
