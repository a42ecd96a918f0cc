"""iALS against its objective, written over all pairs."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.ials import IALS

SETTINGS = {"dim": 5, "unobserved_weight": 0.2, "l2": 0.05, "frequency_power": 0.5}
EVERYBODY = np.arange(15, dtype=np.int32)


@pytest.fixture(scope="module")
def graph() -> BipartiteGraph:
    rng = np.random.default_rng(5)
    pairs = rng.integers(0, 15, 90), rng.integers(0, 12, 90)
    times = rng.integers(0, 99, 90)
    return BipartiteGraph(Interactions.build(*pairs, user_ids=15, item_ids=12, timestamps=times))


def fitted(graph: BipartiteGraph, **settings: float) -> IALS:
    model = IALS(graph, IALS.Config(**SETTINGS | settings))
    model.initialise_(seed=0)
    return model


def dense(graph: BipartiteGraph) -> NDArray[np.float64]:
    R = np.zeros((graph.n_users, graph.n_items))
    R[graph.interactions.users, graph.interactions.items] = 1
    return R


def objective(R: NDArray[np.float64], W: NDArray[np.float64], H: NDArray[np.float64]) -> float:
    found = W @ H.T
    ridge_users = 0.05 * (R.sum(1) + 0.2 * R.shape[1]) ** 0.5
    ridge_items = 0.05 * (R.sum(0) + 0.2 * R.shape[0]) ** 0.5
    fit = (R * (found - 1) ** 2).sum() + 0.2 * (found**2).sum()
    return float(fit + ridge_users @ (W**2).sum(1) + ridge_items @ (H**2).sum(1))


def test_the_vectors_of_users_and_items_are_where_the_objective_is_flat(
    graph: BipartiteGraph,
) -> None:
    vectors = fitted(graph, rounds=300).scorer().vectors()
    assert vectors is not None
    W, H = (np.asarray(table, dtype=np.float64) for table in vectors[:2])
    R, step = dense(graph), 1e-4
    for table in (W, H):
        for place in np.ndindex(table.shape):
            here = table[place]
            sides = []
            for moved in (here - step, here + step):
                table[place] = moved
                sides.append(objective(R, W, H))
            table[place] = here
            assert abs(sides[1] - sides[0]) / (2 * step) < 2e-3


def test_every_round_lowers_the_objective(graph: BipartiteGraph) -> None:
    values = []
    for rounds in (1, 2, 4, 8):
        vectors = fitted(graph, rounds=rounds).scorer().vectors()
        assert vectors is not None
        values.append(objective(dense(graph), *(np.asarray(table) for table in vectors[:2])))
    assert values == sorted(values, reverse=True)


def test_a_few_are_solved_alike_without_compiled_code(
    graph: BipartiteGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer, users = fitted(graph).scorer(), np.arange(3, dtype=np.int32)
    compiled = scorer(users)
    monkeypatch.delitem(sys.modules, "ltocf.graph.kernels.systems")
    np.testing.assert_allclose(scorer(users), compiled, rtol=1e-4, atol=1e-5)


def test_a_newcomer_is_one_solve_and_the_same_as_the_known_user(graph: BipartiteGraph) -> None:
    scorer = fitted(graph).scorer()
    histories = csr_array(dense(graph).astype(np.float32))
    np.testing.assert_allclose(scorer.from_history(histories), scorer(EVERYBODY), atol=1e-5)


@pytest.mark.parametrize("recency", [0.0, 0.8])
def test_reasons_sum_to_the_score(graph: BipartiteGraph, recency: float) -> None:
    scorer = fitted(graph, recency=recency).scorer()
    history = csr_array(np.array([[1, 0, 0.5, 0, 0, 1 / 3, 0, 0, 0, 0, 0, 0]], np.float32))
    scores = scorer.from_history(history)[0]
    items = np.array([1, 3], np.int32)
    terms = scorer.explain(items, history)
    assert not terms.own.any()
    np.testing.assert_allclose(terms.of_history.sum(0), scores[items], atol=1e-5)


def test_a_user_without_items_has_no_opinion(graph: BipartiteGraph) -> None:
    nothing = fitted(graph).scorer().from_history(csr_array(np.zeros((1, 12), np.float32)))
    assert not np.asarray(nothing).any()
