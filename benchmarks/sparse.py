"""Which learning rate, and how many negatives, suit data of which users and items have few pairs.

python -m benchmarks.sparse --data yelp2018 --users 8000 --share 0.33 --json
python -m benchmarks.sparse --data gowalla --share 0.33 --negatives 2 4 8 16 64 --json

A share of the training pairs of some users, drawn with seed 0, a fifth of them held out for test;
the data set's own test pairs are not looked at. LT-OCF with fixed times and no refit, the rest by
default; ratio is the best Recall@20 on validation to that of the largest rate or number.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from benchmarks.measure import machine
from ltocf.config import BPR, RunConfig, TrainConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import split_pairs
from ltocf.ranking.metrics import evaluate
from ltocf.training.fitting import fit


def main() -> None:
    arguments = parse()
    pairs = thinned(load_dataset(arguments.data).split.train, arguments.users, arguments.share)
    dataset = Dataset("sparse", split_pairs(pairs, ratio=0.8, seed=0))
    found = {}
    values = arguments.negatives or arguments.rates
    for value in values:
        train = TrainConfig(refit=False, patience=5)
        loss = BPR(negatives=value) if arguments.negatives else BPR()
        if not arguments.negatives:
            train = train.model_copy(update={"learning_rate": value})
        model = {"name": "ltocf", "learn_times": False, "end_time": arguments.end_time}
        fitted = fit(dataset, RunConfig(model=model, train=train, loss=loss))
        split, scorer = fitted.dataset.split, fitted.model.scorer()
        valid = evaluate(scorer, split.valid, split.train)
        test = evaluate(scorer, split.test, split.seen)
        found[value] = {"valid": valid["recall@20"], "test": test["recall@20"]}
        found[value] |= {"ndcg": test["ndcg@20"]}
        print(f"{value:<6} " + "  ".join(f"{k} {v:.4f}" for k, v in found[value].items()))
    ratio = max(row["valid"] for row in found.values()) / found[max(found)]["valid"]
    size = {"pairs": len(pairs), "pairs_per_node": dataset.split.train.pairs_per_node}
    varied = "negatives" if arguments.negatives else "rates"
    result = {"data": arguments.data, "machine": machine(), "ratio": ratio, **size, varied: found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def thinned(pairs: Interactions, users: int, share: float) -> Interactions:
    """A share of the pairs of some of the users; others, and items without a pair, are left out."""
    draw = np.random.default_rng(0)
    chosen = draw.choice(pairs.n_users, min(users, pairs.n_users), replace=False)
    kept = np.isin(pairs.users, chosen) & (draw.random(len(pairs)) < share)
    rows = [np.unique(side[kept], return_inverse=True) for side in (pairs.users, pairs.items)]
    (users_left, of_user), (items_left, of_item) = rows
    return Interactions.build(of_user, of_item, len(users_left), len(items_left))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--users", type=int, default=8000, help="how many of them; default: 8000")
    parser.add_argument("--share", type=float, default=0.33, help="of their pairs; default: 0.33")
    parser.add_argument("--end-time", type=float, default=4.0, help="K; default: 4")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.001, 0.003, 0.008])
    parser.add_argument("--negatives", type=int, nargs="+", help="vary these at the usual rate")
    parser.add_argument("--json", action="store_true", help="print the result as one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
