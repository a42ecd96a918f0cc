"""Approximate lists of 20 beside exact ones: seconds of each, and how much of the exact is found.

Vectors at random among a million items, whose scores lie as close together as scores can:

    python -m benchmarks.approximate_lists --users 2000 --items 1000000 --json

or those of a run:

    python -m benchmarks.approximate_lists --run RUN --json
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from benchmarks.measure import machine, peak_extra_bytes
from ltocf.data.interactions import Interactions
from ltocf.machine.threads import use_threads
from ltocf.ranking.quantised import QuantisedItems
from ltocf.ranking.top_k import MANY, top_k
from ltocf.recommend.approximate import POOL, ApproximateLists
from ltocf.recommend.lists import FittedModel, ListOptions
from ltocf.recommend.recommender import Recommender
from ltocf.scorers.dot import DotScorer

K, DIM = 20, 64


def model_of_random_vectors(n_users: int, n_items: int) -> FittedModel:
    """Everybody has one item, so that nobody gets what is popular."""
    random = np.random.default_rng(0)
    users = random.standard_normal((n_users, DIM), dtype=np.float32)
    items = random.standard_normal((n_items, DIM), dtype=np.float32)
    one = np.arange(n_users, dtype=np.int32) % n_items
    train = Interactions.build(np.arange(n_users), one, user_ids=n_users, item_ids=n_items)
    return SimpleNamespace(scorer=DotScorer(users, items, train), seen=train, known=train)  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="instead of vectors at random")
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--parts", type=int, default=5, help="of the users, in turns")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one line")
    arguments = parser.parse_args()
    use_threads(arguments.threads)
    if arguments.run:
        fitted = Recommender.load(arguments.run).fitted
    else:
        fitted = model_of_random_vectors(arguments.users, arguments.items)
    vectors = fitted.scorer.vectors()
    assert vectors is not None
    users, items = vectors.with_bias()
    started = time.perf_counter()
    index = QuantisedItems.of(items, np.arange(len(items), dtype=np.int32))
    building = time.perf_counter() - started
    lists = ApproximateLists(fitted, ListOptions(k=K), users, items, index)
    everybody = np.flatnonzero(fitted.seen.user_degrees).astype(np.int32)
    parts = np.array_split(everybody, arguments.parts)
    known = fitted.known

    def exact(rows: np.ndarray) -> np.ndarray:
        return top_k(fitted.scorer, rows, K, n_items=len(items), seen=known).items

    lists(parts[0][:8])  # compiled
    exact(parts[0][:MANY])
    seconds, hits = np.zeros((2, 2)), 0
    for rows in parts:
        before = time.perf_counter(), time.process_time()
        one = exact(rows)
        between = time.perf_counter(), time.process_time()
        other = lists(rows)
        after = time.perf_counter(), time.process_time()
        seconds += np.subtract((between, after), (before, between))
        hits += sum(len(np.intersect1d(a, b.items)) for a, b in zip(one, other, strict=True))
    result = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "users": len(everybody),
        "items": len(items),
        "dim": items.shape[1],
        "threads": arguments.threads,
        "exact_seconds": round(seconds[0, 0], 2),
        "approximate_seconds": round(seconds[1, 0], 2),
        "ratio": round(seconds[0, 0] / seconds[1, 0], 2),
        "processor_ratio": round(seconds[0, 1] / seconds[1, 1], 2),
        "recall": round(hits / (K * len(everybody)), 5),
        "candidates": POOL * K,
        "building_seconds": round(building, 2),
        "peak_extra_megabytes": round(peak_extra_bytes(lambda: lists(parts[0])) / 1e6),
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
