"""How long does an answer take at a data set's size, and how far is it from the bare product?

One user: `Recommender.recommend` in process, ids in and a data frame out, beside the product
of their vector with all items. All users: `top_k` of every user beside the same products with
nothing done to them. Vectors are random: their values do not matter here.

    python -m benchmarks.latency --data $LTOCF_DATA/gowalla --json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.data import read_data
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.ranking.top_k import TILE_BYTES, top_k
from ltocf.recommend.recommender import Recommender
from ltocf.runs.settings import make_config

K = 20


def in_turn(sides: dict[str, Callable[[int], object]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each side in each round; they take turns, so a noisy moment hits all."""
    for side in sides.values():
        side(0)
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for n in range(rounds):
        for name, side in sides.items():
            started = time.perf_counter()
            side(n)
            taken[name].append(1000 * (time.perf_counter() - started))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="town")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="only the JSON line")
    arguments = parser.parse_args()
    dataset = read_data(arguments.data)
    model = build_model(BipartiteGraph(dataset.split.train), "ltocf", {})
    model.initialise_(0)
    recommender = Recommender.wrap(model, dataset, make_config({}))
    users, items = recommender.scorer.users, recommender.scorer.items  # type: ignore[attr-defined]
    seen = recommender.fitted.seen
    everybody = np.arange(seen.n_users, dtype=np.int32)
    asked = np.random.default_rng(0).choice(everybody, arguments.requests)
    ids, item_ids = seen.user_ids[asked], seen.item_ids
    histories = [item_ids[seen.items_of(user)] for user in asked]
    one = in_turn(
        {
            "known": lambda n: recommender.recommend(ids[n], K),
            "new": lambda n: recommender.recommend_new(histories[n], K),
            "product": lambda n: users[asked[n]] @ items.T,
        },
        arguments.requests,
    )
    tile = max(16, TILE_BYTES // (4 * seen.n_items))

    def multiply(n: int) -> None:
        for start in range(0, len(everybody), tile):
            users[start : start + tile] @ items.T

    everyone = in_turn(
        {
            "ranked": lambda n: top_k(
                recommender.scorer, everybody, K, n_items=seen.n_items, seen=seen
            ),
            "product": multiply,
        },
        arguments.rounds,
    )
    result: dict[str, float] = {"threads": torch.get_num_threads(), "requests": len(asked)}
    result |= {f"one_{name}_ms": statistics.median(taken) for name, taken in one.items()}
    result["one_known_p95_ms"] = float(np.quantile(one["known"], 0.95))
    result |= {f"all_{name}_ms": statistics.median(taken) for name, taken in everyone.items()}
    result["ratio"] = result["all_ranked_ms"] / result["all_product_ms"]
    if not arguments.json:
        for name, value in result.items():
            print(f"{name:28} {value}")
    print(json.dumps({"data": Path(arguments.data).name} | result))


if __name__ == "__main__":
    main()
