"""Which loss suits LT-OCF where users and items have few pairs.

python -m benchmarks.losses --data yelp2018 --users 8000 --share 0.33 --json \
    --try "loss=bpr" "loss=softmax normalise=true temperature=0.2 l2=0" --seeds 0 1 2

A share of the training pairs of some users, drawn with seed 0; P, a fifth of them, takes the place
of test, and V, a tenth of the rest, chooses the epoch. The data set's own test pairs are not looked
at; of beauty, the training pairs are a random four fifths. LT-OCF by default but for what is tried;
ratio is the best Recall@20 on P to that of the first that is tried. Means over seeds of training.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.beauty import read_beauty
from benchmarks.measure import machine
from benchmarks.sparse import thinned
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import split_pairs
from ltocf.ranking.metrics import evaluate
from ltocf.runs.settings import make_config
from ltocf.training.fitting import fit


def main() -> None:
    arguments = parse()
    pairs = thinned(training_pairs(arguments.data), arguments.users, arguments.share)
    dataset = Dataset("sparse", split_pairs(pairs, ratio=0.8, seed=0))
    found = {}
    for tried in arguments.tried:
        runs = [trained(dataset, tried.split(), seed) for seed in arguments.seeds]
        found[tried] = {key: statistics.mean(run[key] for run in runs) for key in runs[0]}
        found[tried] |= {"P by seed": [run["P recall"] for run in runs]}
        print(f"{tried}: {found[tried]}", flush=True)
    first = found[arguments.tried[0]]["P recall"]
    ratio = max(row["P recall"] for row in found.values()) / first
    size = {"pairs": len(pairs), "pairs_per_node": dataset.split.train.pairs_per_node}
    result = {"data": arguments.data, "machine": machine(), "ratio": ratio, **size, "tried": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def training_pairs(data: str) -> Interactions:
    if Path(data).name != "beauty":
        return load_dataset(data).split.train
    return split_pairs(read_beauty(Path(data)), ratio=0.8, seed=0).train


def trained(dataset: Dataset, settings: list[str], seed: int) -> dict[str, Any]:
    usual = ["model=ltocf", "refit=false", "patience=5", f"seed={seed}"]
    started = time.perf_counter(), time.process_time()
    fitted = fit(dataset, make_config({}, usual + settings))
    seconds, processor = time.perf_counter() - started[0], time.process_time() - started[1]
    split, scorer = fitted.dataset.split, fitted.model.scorer()
    valid = evaluate(scorer, split.valid, split.train)
    judged = evaluate(scorer, split.test, split.seen)
    best = max(fitted.records, key=lambda record: record.metrics.get("recall@20", 0))
    return {
        "V recall": valid["recall@20"],
        "V ndcg": valid["ndcg@20"],
        "P recall": judged["recall@20"],
        "P ndcg": judged["ndcg@20"],
        "epoch": best.epoch,
        "epochs run": len(fitted.records),
        "seconds": seconds,
        "processor seconds": processor,
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--users", type=int, default=10**9, help="how many; default: all")
    parser.add_argument("--share", type=float, default=1.0, help="of their pairs; default: 1")
    parser.add_argument(
        "--try", nargs="+", dest="tried", default=["loss=bpr", "loss=softmax"],
        metavar="SETTINGS", help="settings as KEY=VALUE, with blanks between them",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="default: 0")
    parser.add_argument("--json", action="store_true", help="print the result as one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
