"""New interactions, users and items: a warm update of a run against training again from nothing.

A twentieth of the users and of the items, and a tenth of everybody's pairs, are not in the first
log; they come in a second one. Both sides end with the same training data and are tested on the
same pairs.

    python -m benchmarks.update --data $LTOCF_DATA/gowalla --json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import Split
from ltocf.ranking.metrics import evaluate
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.update import EPOCHS, update_run

K = 20


def first_and_second(train: Interactions, seed: int) -> tuple[Interactions, pl.DataFrame]:
    """What the first log holds, on the ids that it knows, and the second log."""
    random = np.random.default_rng(seed)
    late_users = random.random(train.n_users) < 0.05
    late_items = random.random(train.n_items) < 0.05
    late = random.random(len(train)) < 0.1
    late |= late_users[train.users] | late_items[train.items]
    early = log_of(train.select(~late))
    ids = {"user": train.user_ids, "item": train.item_ids}
    known = {side: early[side].unique(maintain_order=True) for side in ids}
    users, items = (
        early[side].replace_strict(known[side], np.arange(len(known[side]))).to_numpy()
        for side in ids
    )
    first = Interactions.build(users, items, IdMap(known["user"]), IdMap(known["item"]))
    return first, log_of(train.select(late))


def log_of(pairs: Interactions) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "user": pairs.user_ids.ids.gather(pairs.users),
            "item": pairs.item_ids.ids.gather(pairs.items),
        }
    )


def recall(recommender: Recommender, split: Split) -> float:
    """On the test pairs whose user and item the model knows: after the update, all of them."""
    seen, test = recommender.fitted.seen, split.test
    users = seen.user_ids.find(test.user_ids.ids.to_list())[test.users]
    items = seen.item_ids.find(test.item_ids.ids.to_list())[test.items]
    known = (users >= 0) & (items >= 0)
    found = Interactions.build(users[known], items[known], seen.user_ids, seen.item_ids)
    return evaluate(recommender.scorer, found, seen, [K])[f"recall@{K}"]


def timed(work: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="town")
    parser.add_argument("--model", default="ltocf")
    parser.add_argument("--epochs", type=int, default=10, help="of training from nothing")
    parser.add_argument("--update-epochs", type=int, default=EPOCHS)
    parser.add_argument("--json", action="store_true", help="only the JSON line")
    arguments = parser.parse_args()
    split = load_dataset(arguments.data).split
    first, second = first_and_second(split.seen, seed=0)
    settings = {"epochs": arguments.epochs, "start": "spectral"}
    result: dict[str, Any] = {"model": arguments.model, **settings, "new_pairs": second.height}
    with tempfile.TemporaryDirectory() as directory:
        before, seconds = timed(lambda: Recommender(arguments.model, **settings).fit(first))
        result |= {"first_recall_of_known": recall(before, split), "first_seconds": seconds}
        before.save(Path(directory) / "run")
        run = Run.open(Path(directory) / "run")
        for epochs in dict.fromkeys([0, arguments.update_epochs]):
            output = Path(directory) / f"updated-{epochs}"
            (_, added), seconds = timed(
                lambda output=output, epochs=epochs: update_run(run, second, output, epochs=epochs)
            )
            name = f"update_{epochs}_epochs"
            result[f"{name}_recall"] = recall(Recommender.load(output), split)
            result[f"{name}_seconds"] = seconds
        result |= {"new_users": added.users, "new_items": added.items}
    again, seconds = timed(lambda: Recommender(arguments.model, **settings).fit(split.seen))
    result |= {"retrain_recall": recall(again, split), "retrain_seconds": seconds}
    best = f"update_{arguments.update_epochs}_epochs"
    result["recall_ratio"] = result[f"{best}_recall"] / result["retrain_recall"]
    result["ratio"] = result["retrain_seconds"] / result[f"{best}_seconds"]
    if not arguments.json:
        for name, value in result.items():
            print(f"{name:28} {value}")
    print(json.dumps({"data": Path(arguments.data).name} | result))


if __name__ == "__main__":
    main()
