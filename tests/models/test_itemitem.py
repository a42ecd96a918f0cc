"""EASE, its sparse form, RP3beta, item kNN and Turbo-CF against their formulas, written densely."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model
from ltocf.models.ease import EASE
from ltocf.models.itemknn import ItemKNN
from ltocf.models.rp3beta import RP3Beta
from ltocf.models.sparse_ease import SparseEASE
from ltocf.models.turbocf import TurboCF

Matrix = NDArray[np.float64]


def make_graph(n_users: int, n_items: int) -> BipartiteGraph:
    rng = np.random.default_rng(4)
    n = 3 * max(n_users, n_items)
    pairs = rng.integers(0, n_users - 1, n), rng.integers(0, n_items - 1, n)
    return BipartiteGraph(Interactions.build(*pairs, user_ids=n_users, item_ids=n_items))


@pytest.fixture(scope="module", params=[(12, 20), (20, 12)], ids=["fewer users", "fewer items"])
def graph(request: pytest.FixtureRequest) -> BipartiteGraph:
    return make_graph(*request.param)


def dense(graph: BipartiteGraph) -> Matrix:
    R = np.zeros((graph.n_users, graph.n_items))
    R[graph.interactions.users, graph.interactions.items] = 1
    return R


def scores(model: Model) -> Matrix:
    model.initialise_(seed=0)
    return model.scorer()(np.arange(model.graph.n_users, dtype=np.int32)).astype(np.float64)


def ridge_scores(R: Matrix, l2: float) -> Matrix:
    """Each item regressed on all others, one least-squares problem at a time."""
    predicted = np.zeros_like(R)
    for item in range(R.shape[1]):
        others = np.delete(R, item, axis=1)
        gram = others.T @ others + l2 * np.eye(others.shape[1])
        predicted[:, item] = others @ np.linalg.solve(gram, others.T @ R[:, item])
    return predicted


def test_ease_is_the_ridge_regression_of_each_item_on_the_others(graph: BipartiteGraph) -> None:
    R = dense(graph)
    np.testing.assert_allclose(
        scores(EASE(graph, EASE.Config(l2=3))), ridge_scores(R, 3), atol=1e-5
    )


def test_ease_scores_a_new_user_as_the_known_one_with_their_history(graph: BipartiteGraph) -> None:
    model = EASE(graph, EASE.Config(l2=3))
    known = scores(model)
    new = model.scorer().from_history(csr_array(dense(graph).astype(np.float32)))
    np.testing.assert_allclose(new, known, atol=1e-5)


def test_sparse_ease_with_nothing_dropped_is_ease() -> None:
    graph = make_full_graph()
    ours = scores(SparseEASE(graph, SparseEASE.Config(l2=3, neighbours=9)))
    np.testing.assert_allclose(ours, scores(EASE(graph, EASE.Config(l2=3))), atol=1e-5)
    np.testing.assert_allclose(ours, ridge_scores(dense(graph), 3), atol=1e-5)


def make_full_graph() -> BipartiteGraph:
    """Every two items share a user, so a neighbourhood can be the whole catalogue."""
    rng = np.random.default_rng(1)  # no two cosines tie
    users, items = np.nonzero(rng.random((57, 9)) < 0.6)
    return BipartiteGraph(Interactions.build(users, items, user_ids=57, item_ids=9))


def test_sparse_ease_solves_on_the_neighbours_it_keeps() -> None:
    graph = make_full_graph()
    R = dense(graph)
    cosine = R.T @ R / np.sqrt(np.outer(R.sum(0), R.sum(0)))
    np.fill_diagonal(cosine, 0)
    expected = np.zeros_like(R)
    for item in range(9):
        near = np.argsort(-cosine[item])[:3]
        gram = R[:, near].T @ R[:, near] + 3 * np.eye(3)
        expected[:, item] = R[:, near] @ np.linalg.solve(gram, R[:, near].T @ R[:, item])
    ours = scores(SparseEASE(graph, SparseEASE.Config(l2=3, neighbours=3)))
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def family_scores(R: Matrix, l2: float, p: float, xi: float, alpha: float, beta: float) -> Matrix:
    """Each item regressed on all others, by users who count degree^-beta, with a ridge that grows
    with the degree; one that would explain itself by more than xi is scaled by 1 - xi."""
    degrees, counts = np.maximum(R.sum(1), 1), R.sum(0)
    G = R.T @ (R / degrees[:, None] ** beta)
    ridge = np.diag(l2 + p / (1 - p) * counts)
    powers = np.maximum(counts, 1) ** alpha
    W = np.zeros_like(G)
    for item in range(len(G)):
        others = np.delete(np.arange(len(G)), item)
        free = np.linalg.solve(G + ridge, G[:, item])
        if free[item] > xi:
            rest = (G + ridge)[np.ix_(others, others)]
            free[others] = (1 - xi) * np.linalg.solve(rest, G[others, item])
        W[others, item] = powers[others] * free[others] / powers[item]
    return R @ W


@pytest.mark.parametrize(
    "family",
    [
        {"dropout": 0.4},
        {"self_weight": 0.1},
        {"user_power": 0.5},
        {"item_power": 0.3},
        {"dropout": 0.3, "self_weight": 0.1, "user_power": 0.4, "item_power": 0.2},
    ],
    ids=["edlae", "rdlae", "users", "items", "all"],
)
def test_eases_family_is_its_regression_item_by_item(
    graph: BipartiteGraph, family: dict[str, float]
) -> None:
    names = ("dropout", "self_weight", "item_power", "user_power")
    expected = family_scores(dense(graph), 3, *(family.get(name, 0.0) for name in names))
    model = EASE(graph, EASE.Config(l2=3, **family))
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)
    new = model.scorer().from_history(csr_array(dense(graph).astype(np.float32)))
    np.testing.assert_allclose(new, expected, atol=1e-5)


def test_eases_family_with_zeros_is_ease(graph: BipartiteGraph) -> None:
    zeros = {"dropout": 0.0, "self_weight": 0.0, "user_power": 0.0, "item_power": 0.0}
    ours = scores(EASE(graph, EASE.Config(l2=3, **zeros)))
    np.testing.assert_allclose(ours, ridge_scores(dense(graph), 3), atol=1e-5)


def test_sparse_ease_has_the_same_family() -> None:
    graph = make_full_graph()
    family = {"dropout": 0.3, "self_weight": 0.1, "user_power": 0.4, "item_power": 0.2}
    ours = scores(SparseEASE(graph, SparseEASE.Config(l2=3, neighbours=9, **family)))
    np.testing.assert_allclose(ours, scores(EASE(graph, EASE.Config(l2=3, **family))), atol=1e-5)


def test_sparse_ease_never_explains_an_item_by_one_without_a_common_user() -> None:
    """EASE does, by way of items that both share users with."""
    users, items = np.array([[0, 0, 1, 1], [0, 1, 1, 2]])  # 0 and 2 meet only in 1
    graph = BipartiteGraph(Interactions.build(users, items, user_ids=2, item_ids=3))
    alone = csr_array(np.array([[1, 0, 0]], np.float32))
    found = {}
    for kind in (EASE, SparseEASE):
        model = kind(graph, kind.Config(l2=1))
        model.initialise_(seed=0)
        found[kind] = float(model.scorer().from_history(alone)[0, 2])
    assert found[SparseEASE] == 0
    assert found[EASE] < -0.01


def test_ease_says_what_it_needs_before_it_takes_it() -> None:
    with pytest.raises(ConfigError, match=r"ease needs 0.0 GB .* use sparse_ease"):
        EASE(make_graph(12, 20), EASE.Config(gigabytes=1e-9))


def test_rp3beta_is_three_steps_of_a_walk(graph: BipartiteGraph) -> None:
    R = dense(graph)
    users, items = np.maximum(R.sum(1), 1), np.maximum(R.sum(0), 1)
    W = (R / items).T ** 0.8 @ (R / users[:, None]) ** 0.8 / items**0.4
    np.fill_diagonal(W, 0)
    W /= np.maximum(W.sum(1, keepdims=True), 1e-12)
    ours = scores(RP3Beta(graph, RP3Beta.Config(alpha=0.8, beta=0.4, neighbours=99)))
    np.testing.assert_allclose(ours, R @ W, atol=1e-6)


def test_rp3beta_raises_weights_to_alpha() -> None:
    """Plays of 1, 3 and 7 are strengths of 1, 2 and 3: transition probabilities, to a power."""
    plays = np.array([[1, 3, 0], [7, 1, 3], [0, 1, 7]], np.float32)
    users, items = np.nonzero(plays)
    train = Interactions.build(users, items, 3, 3, weights=plays[users, items])
    R = np.log2(1 + plays)
    W = (R / R.sum(0)).T ** 0.5 @ (R / R.sum(1, keepdims=True)) ** 0.5
    np.fill_diagonal(W, 0)
    W /= W.sum(1, keepdims=True)
    model = RP3Beta(BipartiteGraph(train), RP3Beta.Config(alpha=0.5, beta=0, neighbours=9))
    model.initialise_(seed=0)
    ones = csr_array(np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(model.scorer().from_history(ones), W, atol=1e-6)


def test_item_knn_is_the_shrunk_cosine(graph: BipartiteGraph) -> None:
    R = dense(graph)
    W = R.T @ R / (np.sqrt(np.outer(R.sum(0), R.sum(0))) + 2)
    np.fill_diagonal(W, 0)
    ours = scores(ItemKNN(graph, ItemKNN.Config(neighbours=99, shrinkage=2)))
    np.testing.assert_allclose(ours, R @ W, atol=1e-6)


@pytest.mark.parametrize("gigabytes", [0, 1])  # made again for every block, or kept
@pytest.mark.parametrize("power", [0.7, 1.0])
@pytest.mark.parametrize("kind", ["linear", "second"])
def test_turbocf_is_a_polynomial_of_the_powered_graph(
    graph: BipartiteGraph, power: float, kind: str, gigabytes: float
) -> None:
    R = dense(graph)
    users, items = np.maximum(R.sum(1), 1), np.maximum(R.sum(0), 1)
    Ra = R / users[:, None] ** 0.6 / items**0.4
    Q = (Ra.T @ Ra) ** power
    expected = R @ Q if kind == "linear" else R @ (2 * Q - Q @ Q)
    ours = scores(TurboCF(graph, TurboCF.Config(power=power, filter=kind, gigabytes=gigabytes)))
    np.testing.assert_allclose(ours, expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("power", [0.7, 1.0])
@pytest.mark.parametrize("kind", ["linear", "second"])
def test_turbocf_keeps_the_largest_weights_of_each_item(
    graph: BipartiteGraph, power: float, kind: str
) -> None:
    R = dense(graph)
    users, items = np.maximum(R.sum(1), 1), np.maximum(R.sum(0), 1)
    Ra = R / users[:, None] ** 0.6 / items**0.4
    Q = (Ra.T @ Ra) ** power
    dropped = np.argsort(-Q, axis=1, kind="stable")[:, 3:]
    np.put_along_axis(Q, dropped, 0, axis=1)
    M = Q if kind == "linear" else 2 * Q - Q @ Q
    model = TurboCF(graph, TurboCF.Config(power=power, filter=kind, neighbours=3))
    np.testing.assert_allclose(scores(model), R @ M, atol=1e-4, rtol=1e-5)
    rows, columns = np.array([0, 2], np.int32), np.array([1, 3, 2], np.int32)
    scorer = model.scorer()
    np.testing.assert_allclose(scorer.entries(rows, columns), M[rows][:, columns], atol=1e-5)
    np.testing.assert_allclose(scorer.row_sums(rows), M[rows].sum(1), atol=1e-4, rtol=1e-5)
