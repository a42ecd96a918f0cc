"""What is left out of a list's scores cannot be listed: against scores that are all there."""

from __future__ import annotations

import sys

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltocf.data.dataset import Dataset
from ltocf.ranking import sums as module
from ltocf.ranking.sums import best_sums, row_lengths
from ltocf.ranking.top_k import rank
from ltocf.recommend.lists import FittedModel, ListOptions, final_scores, make_lists
from ltocf.recommend.people import Person
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.rules import Rules


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.sampled_from([0.0, 0.1, 10.0]))
def test_the_best_of_the_sums_are_those_of_a_full_sort(seed: int, most: int, size: float) -> None:
    """Whole numbers, so that sums are exact and many are tied."""
    random = np.random.default_rng(seed)
    n_items = 1500
    first = np.where(random.random((3, n_items)) < 0.3, random.integers(0, 200, (3, n_items)), 0)
    lengths = random.pareto(1.5, n_items)[:, None]
    table = np.round(random.standard_normal((n_items, 6)) * lengths).astype(np.float32)
    vectors = np.round(size * random.standard_normal((3, 6))).astype(np.float32)
    whole = first.astype(np.float32) + vectors @ table.T
    wanted = [most, most + 1, 1]
    found = best_sums(first.astype(np.float32), vectors, table, row_lengths(table), wanted)
    for row, sums, k in zip(found, whole, wanted, strict=True):
        best = np.argsort(-sums, kind="stable")[:k]
        np.testing.assert_array_equal(np.argsort(-row, kind="stable")[:k], best)
        np.testing.assert_array_equal(row[best], sums[best])
        kept = row > -np.inf
        np.testing.assert_array_equal(row[kept], sums[kept])


def test_most_of_a_table_whose_rows_are_short_is_not_read() -> None:
    random = np.random.default_rng(0)
    table = random.standard_normal((4000, 8)).astype(np.float32)
    first, vector = random.random((1, 4000), dtype=np.float32), np.full((1, 8), 1e-4, np.float32)
    table[70:] = np.nan  # what is read of it would show
    first[:, :70] += 1
    found = best_sums(first, vector, table, np.ones(4000, np.float32), [5])
    assert np.flatnonzero(found[0] > -np.inf).tolist() == np.flatnonzero(found[0] > 1).tolist()
    assert not np.isnan(found).any()


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_compiled_code_leaves_out_what_numpy_does(
    size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(1)
    first = random.integers(0, 900, (4, 1000)).astype(np.float32)
    table = random.integers(-9, 9, (1000, 7)).astype(np.float32)
    vectors = np.round(size * random.standard_normal((4, 7))).astype(np.float32)
    arrays = vectors, table, row_lengths(table), [3, 10, 50, 900]
    assert sys.modules["numba"] is numba
    compiled = best_sums(first.copy(), *arrays)
    monkeypatch.delitem(sys.modules, "numba")
    np.testing.assert_array_equal(compiled, best_sums(first.copy(), *arrays))


@pytest.fixture(scope="module")
def gfcf(hamlet: Dataset) -> FittedModel:
    return Recommender("gfcf", rank=8).fit(hamlet).fitted


def blocked(fitted: FittedModel) -> np.ndarray:
    mask = np.zeros(fitted.seen.n_items, bool)
    mask[::9] = True
    return mask


OPTIONS = {
    "plain": lambda fitted: ListOptions(4),
    "seen": lambda fitted: ListOptions(4, keep_seen=True),
    "blocked": lambda fitted: ListOptions(4, blocked=blocked(fitted)),
    "rules": lambda fitted: ListOptions(
        4, rules=Rules.parse(exclude=fitted.seen.item_ids.ids.to_list()[::7])
    ),
    "boosted": lambda fitted: ListOptions(
        4, rules=Rules.parse(boost=f"kind={fitted.dataset.item_names['kind'][0]}:3")
    ),
    "faded": lambda fitted: ListOptions(4, fade_after=1.0),
    "all": lambda fitted: ListOptions(1000),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_lists_are_those_of_all_scores(
    name: str, gfcf: FittedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPARE", 1)
    monkeypatch.setattr(module, "WORTH_IT", 1)  # the town is small
    options = OPTIONS[name](gfcf)
    met, times = np.array([3, 5], np.int32), np.array([10**9, 10**9 + 1])
    for start in range(0, 100, 5):
        people = [Person(row) for row in range(start, start + 4)]
        people += [Person(start + 4, met, times, shown=np.repeat(np.arange(9), 4), met=met[:1])]
        scores = final_scores(gfcf, people, options)
        k = min(options.k, scores.shape[1])
        expected = rank(scores, k, np.arange(5, dtype=np.int32), seen=None)
        for one, items, best in zip(make_lists(gfcf, people, options), *expected, strict=True):
            assert one.items.tolist() == items[items >= 0].tolist()
            np.testing.assert_allclose(one.scores, best[items >= 0], rtol=1e-5, atol=1e-7)
