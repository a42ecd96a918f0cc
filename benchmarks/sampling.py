"""BPR triples a second, against a vectorised NumPy sampler of the same distribution.

python -m benchmarks.sampling --data $LTOCF_DATA/gowalla --json
"""

from __future__ import annotations

import json

import numpy as np

from benchmarks.data import read_data
from benchmarks.measure import median_seconds, parse_arguments
from ltocf.batches.triples import TripleBatches
from ltocf.data.interactions import Interactions

BATCH = 16384


def numpy_epoch(train: Interactions, batch_size: int, random: np.random.Generator) -> None:
    """Shuffle the pairs; draw a negative for each, and again where the user has it."""
    keys = train.users.astype(np.int64) * train.n_items + train.items
    order = random.permutation(len(train))
    for start in range(0, len(order), batch_size):
        users = train.users[order[start : start + batch_size]].astype(np.int64)
        negatives = random.integers(train.n_items, size=len(users))
        wrong = np.arange(len(users))
        while len(wrong):
            wanted = users[wrong] * train.n_items + negatives[wrong]
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            wrong = wrong[keys[at] == wanted]
            negatives[wrong] = random.integers(train.n_items, size=len(wrong))


def main() -> None:
    arguments = parse_arguments(__doc__)
    train = read_data(arguments.data).split.train
    random = np.random.default_rng(0)

    def ours() -> None:
        for batch in TripleBatches(train, batch_size=BATCH, negatives=1, seed=0, epoch=1):
            batch.whole()

    seconds = median_seconds(
        {"ours": ours, "numpy": lambda: numpy_epoch(train, BATCH, random)}, arguments.rounds
    )
    result = {
        "data": train.fingerprint,
        "triples": len(train),
        "ours_triples_per_second": round(len(train) / seconds["ours"]),
        "numpy_triples_per_second": round(len(train) / seconds["numpy"]),
        "ratio": round(seconds["numpy"] / seconds["ours"], 2),
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
