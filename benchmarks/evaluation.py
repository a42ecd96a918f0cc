"""All-ranking evaluation of every user against the bare matrix product of the same embeddings.

The product is NumPy's, a tile of 32 MB at a time, with nothing done to the scores.

python -m benchmarks.evaluation --data $LTOCF_DATA/gowalla --json
"""

from __future__ import annotations

import json

import numpy as np

from benchmarks.data import read_data
from benchmarks.measure import median_seconds, parse_arguments, peak_extra_bytes
from ltocf.ranking.metrics import evaluate
from ltocf.ranking.top_k import TILE_BYTES
from ltocf.scorers.dot import DotScorer


def main() -> None:
    arguments = parse_arguments(__doc__)
    split = read_data(arguments.data).split
    random = np.random.default_rng(0)
    users = random.standard_normal((split.train.n_users, 64), dtype=np.float32)
    items = random.standard_normal((split.train.n_items, 64), dtype=np.float32)
    tile = TILE_BYTES // (4 * split.train.n_items)
    scorer = DotScorer(users, items, split.train)

    def product() -> None:
        for start in range(0, len(users), tile):
            users[start : start + tile] @ items.T

    def ours() -> None:
        evaluate(scorer, split.test, split.train, ks=(20,))

    seconds = median_seconds({"evaluation": ours, "product": product}, arguments.rounds)
    result = {
        "data": split.train.fingerprint,
        "users": len(users),
        "items": len(items),
        "evaluation_seconds": round(seconds["evaluation"], 3),
        "matrix_product_seconds": round(seconds["product"], 3),
        "ratio": round(seconds["evaluation"] / seconds["product"], 3),
        "peak_extra_megabytes": round(peak_extra_bytes(ours) / 1e6),
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
