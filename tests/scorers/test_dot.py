"""Dot products and what is added to them, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Interactions
from ltocf.ranking.sums import dot_products
from ltocf.scorers.dot import DotScorer, FoldIn

EVERYBODY = np.arange(2, dtype=np.int32)
USERS = np.array([[1, 0], [0, 2]], np.float32)
ITEMS = np.array([[1, 0], [3, 0], [2, 2]], np.float32)
TRAIN = Interactions.build(np.array([0, 1, 0]), np.array([1, 1, 2]), 2, 3)  # degrees 0, 2, 1
# User 0 scores 1, 3, 2 (variance 2 / 3), user 1 scores 0, 0, 4 (variance 32 / 9): mean 19 / 9.
SPREAD = np.sqrt(19 / 9)
BIAS = 0.5 * SPREAD * np.log([1, 3, 2])


def scorer(*, folds: bool = False, unit: bool = False) -> DotScorer:
    fold = FoldIn(USERS, 0.5, ITEMS[::-1].copy(), HistoryWeights(0.0, TRAIN))
    return DotScorer(USERS, ITEMS, TRAIN, fold if folds else None, unit=unit)


def test_popularity_is_weighed_in_standard_deviations_of_a_users_scores() -> None:
    found = scorer().with_popularity(0.5)(EVERYBODY)
    np.testing.assert_allclose(found, USERS @ ITEMS.T + BIAS, rtol=1e-6)


def test_without_weight_there_is_no_bias() -> None:
    plain = scorer().with_popularity(0.5).with_popularity(0)
    np.testing.assert_array_equal(plain(EVERYBODY), USERS @ ITEMS.T)
    assert plain.vectors().bias is None
    assert "bias" not in plain.parts().arrays


def test_vectors_with_the_bias_as_a_dimension_have_the_scores_as_products() -> None:
    weighed = scorer().with_popularity(0.5)
    users, items = weighed.vectors().with_bias()
    assert users.shape == (2, 3) and items.shape == (3, 3)
    np.testing.assert_allclose(users @ items.T, weighed(EVERYBODY), rtol=1e-6)


def test_items_are_alike_by_their_vectors_alone() -> None:
    both = EVERYBODY, scorer().with_popularity(2.0)
    np.testing.assert_array_equal(both[1].similar_items(both[0]), scorer().similar_items(both[0]))


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("user", [-1, 1])
def test_the_terms_are_those_of_the_score_and_one_is_popularity(unit: bool, user: int) -> None:
    weighed = scorer(folds=True, unit=unit).with_popularity(0.5)
    history = csr_array((np.ones(2, np.float32), ([0, 0], [1, 2])), shape=(1, 3))
    items = np.array([2, 0, 1], np.int32)
    terms = weighed.explain(items, history, user)
    scores = weighed.from_history(history, np.array([user], np.int32))[0]
    total = terms.own + terms.popularity + terms.of_history.sum(0)
    np.testing.assert_allclose(total, scores[items], rtol=1e-5)
    np.testing.assert_allclose(terms.popularity, BIAS[items], rtol=1e-6)
    mean = weighed.explain_mean(history, user)
    assert float((mean.own + mean.popularity + mean.of_history.sum(0))[0]) == pytest.approx(
        scores.mean(), rel=1e-5
    )


def test_a_new_user_has_a_vector_of_length_1_if_other_users_have() -> None:
    """Else popularity would count more with them, or less, than with somebody known."""
    history = csr_array((np.ones(1, np.float32), ([0], [1])), shape=(1, 3))
    found = scorer(folds=True, unit=True).from_history(history)[0]
    # Row 1 of the history's vectors is (3, 0): of length 1 it is (1, 0).
    np.testing.assert_allclose(found, [1, 3, 2], rtol=1e-6)


def test_its_parts_make_it_again() -> None:
    weighed = scorer(folds=True).with_popularity(0.5)
    again = DotScorer.of_parts(weighed.parts(), TRAIN)
    np.testing.assert_array_equal(again(EVERYBODY), weighed(EVERYBODY))


@pytest.mark.parametrize("count", [0, 1, 2, 16, 17])
def test_few_vectors_have_the_products_of_many(count: int) -> None:
    random = np.random.default_rng(0)
    vectors, table = (random.random((n, 5), dtype=np.float32) for n in (count, 40))
    found = dot_products(vectors, table)
    assert found.shape == (count, 40) and found.flags.c_contiguous
    np.testing.assert_allclose(found, vectors.astype(float) @ table.astype(float).T, rtol=1e-5)
