"""Measures beyond accuracy by hand-worked lists."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions
from ltocf.ranking.beyond import beyond_accuracy, gini, intra_list_diversity


def test_each_measure_by_hand():
    # Four people: item 0 has four of them, 1 has two, 2 has one, 3 nobody.
    train = Interactions.build(
        np.array([0, 1, 2, 3, 0, 1, 2]), np.array([0, 0, 0, 0, 1, 1, 2]), 4, 5
    )
    taken = Interactions.build(np.array([0, 3]), np.array([2, 1]), 4, 5)
    found = beyond_accuracy(np.array([1, 2, 0, 1, 0]), train, taken)
    assert found == {
        "coverage": 3 / 5,
        "gini": pytest.approx(0.5),  # (-4*0 -2*0 + 0*1 + 2*1 + 4*2) / (5 * 4)
        "novelty": (0 + 2 * 1 + 2) / 4,  # -log2 of 4/4, twice of 2/4, and of 1/4 for nobody
        "popularity": (4 + 2 * 2 + 0) / 4,
        "consumed": (1 + 2) / 2,
        "cold": 1 / 4,
    }


def test_gini_is_0_when_all_are_alike_and_near_1_when_one_has_all():
    assert gini(np.array([3, 3, 3])) == pytest.approx(0)
    assert gini(np.array([0, 0, 0, 8])) == pytest.approx(3 / 4)
    assert gini(np.zeros(3, dtype=np.int64)) == 0


def test_intra_list_diversity_is_the_mean_over_pairs():
    rows = np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1], [0, 0, 0]], dtype=np.float32)
    lists = np.array([[0, 1, 2], [0, 3, -1], [2, -1, -1], [0, 1, -1]], dtype=np.int32)
    found = intra_list_diversity(lists, csr_array(rows))
    assert found == pytest.approx([1 - 0.6 / 3, 1, 0, 1 - 0.6])
