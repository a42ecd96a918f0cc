import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ltocf.data.interactions import Interactions
from ltocf.ranking.top_k import TILE_BYTES, rank, ranked_tiles, top_k
from tests.conftest import interactions_of


def full_sort(scores: np.ndarray, k: int, seen: list[set[int]]) -> np.ndarray:
    lists = np.full((len(scores), k), -1)
    for row, values in enumerate(scores):
        best = [i for i in np.argsort(-values, kind="stable") if i not in seen[row]][:k]
        lists[row, : len(best)] = best
    return lists


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 200), st.integers(1, 30))
def test_top_k_is_a_full_sort_with_ties_to_the_lower_item(seed, n_users, n_items, k):
    random = np.random.default_rng(seed)
    scores = random.integers(0, 8, (n_users, n_items)).astype(np.float32)  # many ties
    mask = random.random((n_users, n_items)) < 0.3
    seen = interactions_of(list(zip(*np.nonzero(mask), strict=True)), n_users, n_items)
    users = np.arange(n_users, dtype=np.int32)
    ranked = rank(scores.copy(), k, users, seen)
    expected = full_sort(scores, k, [set(np.flatnonzero(row)) for row in mask])
    assert_array_equal(ranked.items, expected)
    found = np.take_along_axis(scores, np.maximum(expected, 0), 1)
    assert_array_equal(ranked.scores, np.where(expected < 0, -np.inf, found))


def test_tiles_give_the_same_lists_as_one_pass(monkeypatch):
    scores = np.random.default_rng(0).random((100, 37), dtype=np.float32)
    users = np.arange(100, dtype=np.int32)
    whole = rank(scores.copy(), 5, users, None)
    monkeypatch.setattr("ltocf.ranking.top_k.TILE_BYTES", 37 * 4 * 16)
    tiled = top_k(lambda rows: scores[rows], users, 5, n_items=37)
    assert_array_equal(tiled.items, whole.items)
    assert_array_equal(tiled.scores, whole.scores)


def test_seen_items_are_those_of_the_user_not_of_the_row():
    seen: Interactions = interactions_of([(0, 0), (7, 2)], 8, 3)
    ranked = rank(np.array([[1, 2, 3]], np.float32), 1, np.array([7], np.int32), seen)
    assert ranked.items.tolist() == [[1]]


def test_no_users_give_no_lists():
    ranked = top_k(lambda rows: np.empty((0, 4), np.float32), np.empty(0, np.int32), 3, n_items=4)
    assert ranked.items.shape == (0, 3)


def test_no_more_scores_are_asked_for_at_a_time_than_a_tile_holds():
    """So that lists of 100,000 users among a million items take the memory of some tens of MB."""
    random = np.random.default_rng(0)
    items = random.standard_normal((20_000, 2), dtype=np.float32)
    users = random.standard_normal((1_000, 2), dtype=np.float32)
    asked = []

    def score(rows: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return users[rows] @ items.T

    everybody = np.arange(len(users), dtype=np.int32)
    tiles = list(ranked_tiles(score, everybody, 5, n_items=len(items)))
    assert sum(asked) == len(users) and max(asked) * items.shape[0] * 4 <= TILE_BYTES
    best = np.argsort(-(users[-1:] @ items.T), kind="stable")[0, :5]
    assert_array_equal(tiles[-1].items[-1], best)
