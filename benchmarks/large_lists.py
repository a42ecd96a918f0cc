"""Exact lists of 20 among a million items: seconds beside the bare product, and its memory.

The product is NumPy's, of a hundredth of the users, a tile at a time with nothing done to the
scores; the memory is that of as many users' lists and of the items in the order of the kernel.

python -m benchmarks.large_lists --users 100000 --items 1000000 --json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import date
from typing import NamedTuple

import numpy as np

from benchmarks.measure import machine, peak_extra_bytes
from ltocf.data.interactions import Interactions, Rows
from ltocf.machine.threads import use_threads
from ltocf.ranking.top_k import ranked_tiles, tile_bytes
from ltocf.scorers.dot import DotScorer

K, DIM = 20, 64


class Seconds(NamedTuple):
    elapsed: float
    processor: float


def seconds_of(task: Callable[[], None]) -> Seconds:
    started = time.perf_counter(), time.process_time()
    task()
    return Seconds(time.perf_counter() - started[0], time.process_time() - started[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one line")
    arguments = parser.parse_args()
    use_threads(arguments.threads)
    random = np.random.default_rng(0)
    users = random.standard_normal((arguments.users, DIM), dtype=np.float32)
    items = random.standard_normal((arguments.items, DIM), dtype=np.float32)
    everybody = np.arange(len(users), dtype=np.int32)
    few = everybody[: max(len(users) // 100, 512)]
    scorer = DotScorer(users, items, Interactions.build(few, few, len(users), len(items)))
    tile = tile_bytes(len(items)) // (4 * len(items))

    def product() -> None:
        for start in range(0, len(few), tile):
            users[few[start : start + tile]] @ items.T

    def lists(rows: Rows = everybody) -> None:  # kept nowhere, as if written to a file
        for _ in ranked_tiles(scorer, rows, K, n_items=len(items)):
            pass

    lists(few)  # compiles
    products = seconds_of(product)  # of a hundredth of the users, times a hundred
    ranked = seconds_of(lists)
    share = len(few) / len(users)
    result = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "users": len(users),
        "items": len(items),
        "threads": arguments.threads,
        "seconds": round(ranked.elapsed, 1),
        "processor_seconds": round(ranked.processor, 1),
        "product_seconds": round(products.elapsed / share, 1),
        "product_processor_seconds": round(products.processor / share, 1),
        "ratio": round(ranked.processor / products.processor * share, 3),
        "peak_extra_megabytes": round(peak_extra_bytes(lambda: lists(few)) / 1e6),
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
