"""One number for each pair, whatever the version of NumPy."""

import numpy as np

from ltocf.data.histories import HistoryWeights, histories_of
from ltocf.data.interactions import Interactions
from ltocf.data.pairs.columns import pair_keys

LARGE = 60_000  # users, and items: more cells than 32 bits can count


def test_keys_of_32_bit_rows_are_exact_beyond_two_to_the_31_cells():
    users = np.array([0, 40_000, LARGE - 1], dtype=np.int32)
    items = np.array([3, 50_000, LARGE - 1], dtype=np.int32)
    expected = [int(u) * LARGE + int(i) for u, i in zip(users, items, strict=True)]
    assert pair_keys(users, items, LARGE).tolist() == expected
    assert pair_keys(users, items, LARGE).dtype == np.int64


def test_every_strength_of_a_large_log_is_found():
    users = np.arange(0, LARGE, 7, dtype=np.int32)
    weights = 1 + np.arange(len(users), dtype=np.float32)
    train = Interactions.build(users, users, LARGE, LARGE, weights=weights)
    rows = HistoryWeights(0.0, train).normalise(
        histories_of(train), np.ones(LARGE), np.arange(LARGE, dtype=np.int32)
    )
    # A history of one item of strength s is s / sqrt(s * 1) in the normalised adjacency.
    np.testing.assert_allclose(rows.data, np.sqrt(train.strengths), rtol=1e-6)
