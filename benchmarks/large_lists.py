"""Exact lists of 20 among a million items: seconds beside the bare product, and its memory.

python -m benchmarks.large_lists --users 100000 --items 1000000 --json
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import date

import numpy as np

from benchmarks.measure import machine, peak_extra_bytes
from ltocf.machine.threads import use_threads
from ltocf.ranking.top_k import ranked_tiles, tile_bytes

K, DIM = 20, 64


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
    products = [0.0, 0.0]  # elapsed and processor seconds

    def score(rows: np.ndarray) -> np.ndarray:
        started = time.perf_counter(), time.process_time()
        scores = users[rows] @ items.T
        products[0] += time.perf_counter() - started[0]
        products[1] += time.process_time() - started[1]
        return scores

    def lists() -> None:  # kept nowhere, as if written to a file tile by tile
        for _ in ranked_tiles(score, everybody, K, n_items=len(items)):
            pass

    for _ in ranked_tiles(score, everybody[:1], K, n_items=len(items)):
        products[:] = 0.0, 0.0  # compiled; now the clock starts
    started = time.perf_counter(), time.process_time()
    memory = peak_extra_bytes(lists)
    elapsed, processor = time.perf_counter() - started[0], time.process_time() - started[1]
    result = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "users": len(users),
        "items": len(items),
        "threads": arguments.threads,
        "seconds": round(elapsed, 1),
        "processor_seconds": round(processor, 1),
        "product_seconds": round(products[0], 1),
        "product_processor_seconds": round(products[1], 1),
        "ratio": round(processor / products[1], 3),
        "tile_megabytes": round(tile_bytes(len(items)) / 1e6),
        "peak_extra_megabytes": round(memory / 1e6),
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
