"""Peak memory of each closed form at the size of Amazon-Book, on random data.

python -m benchmarks.memory --json

52,643 users, 91,599 items and about 2.4 million pairs, with the long tails that such data have.
Each model is solved in a process of its own and scores 256 users; the figure is all that
the process ever held, Python and libraries included. Accuracy means nothing here, so the singular
vectors stop after one round: how many there are, not how exact they are, is what takes memory.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine

MODELS = ("gfcf", "bspm", "chebycf", "sparse_ease", "rp3beta", "itemknn", "turbocf")
USERS, ITEMS, PAIRS = 52_643, 91_599, 2_984_108 * 4 // 5
SCORED = 256


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--json", action="store_true", help="one line")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.models:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure, [name]))
        row = rows[-1]
        print(f"{name:8} {row['peak_gigabytes']:5.2f} GB  {row['seconds']:6.1f} s", flush=True)
    result = {"machine": machine(), "users": USERS, "items": ITEMS, "models": rows}
    print(json.dumps(result, indent=None if arguments.json else 2))


def measure(name: str) -> dict[str, Any]:
    from ltocf.data.interactions import Interactions
    from ltocf.graph import spectrum as spectral
    from ltocf.graph.bipartite import BipartiteGraph
    from ltocf.models import build_model

    users, items = random_pairs()
    graph = BipartiteGraph(Interactions.build(users, items, USERS, ITEMS))
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        spectral.ROUNDS = 1
        setattr(spectral, "cache_root", lambda: Path(cache))  # noqa: B010 - it only imports it
        model = build_model(graph, name, {})
        model.initialise_(0)
        model.scorer()(np.arange(SCORED, dtype=np.int32))
    return {
        "model": name,
        "pairs": len(graph.interactions),
        "heaviest_user": int(graph.interactions.user_degrees.max()),
        "heaviest_item": int(graph.interactions.item_degrees.max()),
        "seconds": round(time.perf_counter() - start, 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def random_pairs() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Users and items drawn by themselves, each with a heavy tail; some pairs come twice."""
    draw = np.random.default_rng(0)
    busy, popular = (1 / (np.arange(n) + 50.0) ** 0.8 for n in (USERS, ITEMS))
    users = draw.choice(USERS, PAIRS, p=busy / busy.sum())
    return users, draw.choice(ITEMS, PAIRS, p=popular / popular.sum())


if __name__ == "__main__":
    main()
