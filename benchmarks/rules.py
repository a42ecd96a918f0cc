"""What rules cost: a list under each kind of rule against the list without.

One person at a time, ten items, random vectors of 64 dimensions at the data set's size, and a
made-up catalogue: 50 categories, 200 tags, prices, arrivals. The claim is about filters: at most
1.5 times the list without.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from benchmarks.measure import median_seconds, parse_arguments
from ltocf.data.dataset import Dataset
from ltocf.data.sources.catalog import load_dataset
from ltocf.recommend.lists import FittedModel, ListOptions, make_lists
from ltocf.recommend.people import Person
from ltocf.recommend.rules import Rules
from ltocf.scorers.dot import DotScorer

PEOPLE, K, DIM = 200, 10, 64
RULES = {
    "without": Rules(),
    "where": Rules.parse(["category=c1|c2|c3|c4|c5", "price<20"]),
    "where tags": Rules.parse("tags~t7"),
    "boost": Rules.parse(boost=["new:1.2", "price<5:1.1"]),
    "at most": Rules.parse(at_most="2:category"),
    "pin": Rules.parse(pin=["1", "2"]),
    "diversity": Rules.parse(diversity=0.3),
    "diversity by vectors": Rules.parse(diversity=0.3, by="vectors"),
}


def main() -> None:
    arguments = parse_arguments(__doc__)
    dataset = with_catalogue(load_dataset(arguments.data))
    seen, random = dataset.split.seen, np.random.default_rng(0)
    users, items = (
        random.standard_normal((n, DIM), dtype=np.float32) for n in (seen.n_users, seen.n_items)
    )
    scorer = DotScorer(users, items, seen)
    fitted = FittedModel(dataset, scorer, seen, lambda: None)  # type: ignore[arg-type, return-value]
    people = random.choice(seen.n_users, PEOPLE).astype(np.int32)

    def lists(rules: Rules) -> None:
        for row in people.tolist():
            make_lists(fitted, [Person(row)], ListOptions(K, rules=rules))

    tasks = {name: lambda rules=rules: lists(rules) for name, rules in RULES.items()}
    seconds = median_seconds(tasks, arguments.rounds)
    milliseconds = {name: round(1000 * value / PEOPLE, 3) for name, value in seconds.items()}
    ratios = {name: round(value / seconds["without"], 2) for name, value in seconds.items()}
    filters = max(ratios["where"], ratios["where tags"])
    found = {"items": seen.n_items, "milliseconds": milliseconds, "ratios": ratios}
    if not arguments.json:
        for name, ratio in ratios.items():
            print(f"{name:22} {milliseconds[name]:8.3f} ms {ratio:6.2f} times")
    print(json.dumps(found | {"ratio": filters}))


def with_catalogue(dataset: Dataset) -> Dataset:
    n, random = dataset.split.train.n_items, np.random.default_rng(1)
    start = datetime(2024, 1, 1)
    table = pl.DataFrame(
        {
            "category": [f"c{c}" for c in random.integers(50, size=n)],
            "tags": [[f"t{t}" for t in some] for some in random.integers(200, size=(n, 4))],
            "price": random.gamma(2, 10, size=n),
            "added": [start + timedelta(days=int(d)) for d in random.integers(400, size=n)],
        }
    )
    return replace(dataset, item_names=table)


if __name__ == "__main__":
    main()
