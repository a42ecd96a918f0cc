"""The graph as an operator, against matrices small enough to write down."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from ltocf.data.interactions import Interactions
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.kernels import blocks, recurrence
from ltocf.graph.kernels.ordering import Adjacency, locality_order


def interactions(pairs: list[tuple[int, int]], n_users: int, n_items: int) -> Interactions:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Interactions.build(array[:, 0], array[:, 1], n_users, n_items)


@st.composite
def graphs(draw: st.DrawFn) -> BipartiteGraph:
    n_users, n_items = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    pair = st.tuples(st.integers(0, n_users - 1), st.integers(0, n_items - 1))
    return BipartiteGraph(interactions(draw(st.lists(pair, max_size=30)), n_users, n_items))


def dense(graph: BipartiteGraph) -> torch.Tensor:
    """A from its definition, one pair at a time."""
    A = torch.zeros(graph.n_nodes, graph.n_nodes, dtype=torch.float64)
    train = graph.interactions
    for user, item in zip(train.users.tolist(), train.items.tolist(), strict=True):
        value = 1 / np.sqrt(train.user_degrees[user] * train.item_degrees[item])
        A[user, graph.n_users + item] = A[graph.n_users + item, user] = value
    return A


@settings(deadline=None, max_examples=60)
@given(graphs(), st.sampled_from([1, 3, 8, 16, 33, 64]), st.sampled_from(["float32", "float64"]))
def test_the_product_is_that_of_the_dense_matrix(
    graph: BipartiteGraph, dim: int, dtype: str
) -> None:
    E = torch.randn(graph.n_nodes, dim, dtype=getattr(torch, dtype))
    expected = (dense(graph) @ E.double()).to(E.dtype)
    atol = 1e-5 if dtype == "float32" else 1e-13
    assert_close(graph @ E, expected, rtol=0, atol=atol)


@settings(deadline=None, max_examples=30)
@given(graphs(), st.lists(st.floats(-2, 2), min_size=1, max_size=6), st.integers(1, 20))
def test_torch_sparse_sums_as_the_kernels_do(
    graph: BipartiteGraph, coefficients: list[float], dim: int
) -> None:
    E, other = torch.randn(2, graph.n_nodes, dim, dtype=torch.float64)
    ours, our_products = graph.chebyshev_sum(E, coefficients, other)
    theirs, their_products = graph._chebyshev_torch(E, coefficients, other)
    assert_close(ours, theirs, rtol=0, atol=1e-12)
    assert_close(our_products, their_products, rtol=0, atol=1e-10)


def test_a_graph_by_hand() -> None:
    # Two users share item 0; user 0 also has item 1. Nobody has item 2.
    graph = BipartiteGraph(interactions([(0, 0), (0, 1), (1, 0)], n_users=2, n_items=3))
    assert graph.degrees.tolist() == [2, 1, 2, 1, 0]
    E = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]], dtype=torch.float64)
    expected = [3 / 2 + 4 / 2**0.5, 3 / 2**0.5, 1 / 2 + 2 / 2**0.5, 1 / 2**0.5, 0]
    assert_close((graph @ E)[:, 0], torch.tensor(expected, dtype=torch.float64))
    users, items = graph.split(E)
    assert users[:, 0].tolist() == [1, 2] and items[:, 0].tolist() == [3, 4, 5]


def test_the_product_is_differentiable() -> None:
    graph = BipartiteGraph(interactions([(0, 0), (0, 1), (1, 0)], 2, 3))
    E = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda E: graph @ E, E)


@pytest.mark.parametrize("team_bytes", [0, 1 << 25])
@pytest.mark.parametrize("dim", [16, 64, 80])
def test_results_do_not_depend_on_the_number_of_threads_or_how_they_team_up(
    dim: int, team_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ltocf.graph.kernels.blocks.TEAM_BYTES", team_bytes)
    rng = np.random.default_rng(0)
    pairs = np.stack([rng.integers(0, 700, 20_000), rng.integers(0, 900, 20_000) ** 2 // 900], 1)
    graph = BipartiteGraph(Interactions.build(pairs[:, 0], pairs[:, 1], 700, 900))
    E, other = torch.randn(2, graph.n_nodes, dim)
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2, 7):
        torch.set_num_threads(threads)
        results.append((*graph.chebyshev_sum(E, [0.5, -1.0, 2.0, 0.25], other), graph @ E))
    torch.set_num_threads(before)
    for out, products, once in results[1:]:
        assert torch.equal(out, results[0][0])
        assert products == results[0][1]
        assert torch.equal(once, results[0][2])


def test_ordering_the_nodes_changes_where_they_are_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    train = Interactions.build(rng.integers(0, 90, 800), rng.integers(0, 70, 800), 100, 80)
    natural, ordered = BipartiteGraph(train), BipartiteGraph(train)
    E, other = torch.randn(2, natural.n_nodes, 20)
    expected = natural.chebyshev_sum(E, [0.5, -1.0, 2.0, 0.25], other)
    monkeypatch.setattr("ltocf.graph.neighbours.NODES_TO_ORDER", 0)
    out, products = ordered.chebyshev_sum(E, [0.5, -1.0, 2.0, 0.25], other)
    order = ordered.lists._ordered.order
    assert sorted(order) == list(range(180)) and (order != np.arange(180)).any()
    assert (order[:100] < 100).all()
    assert torch.equal(out, expected[0])
    assert products == pytest.approx(expected[1], rel=1e-5)


def test_nodes_of_a_community_are_ordered_together() -> None:
    rng = np.random.default_rng(2)
    users, community = np.arange(2000), rng.integers(0, 2, 2000)
    items = 200 * community[:, None] + rng.integers(0, 200, (2000, 10))
    train = Interactions.build(np.repeat(users, 10), items.ravel(), 2000, 400)
    graph = BipartiteGraph(train)
    natural = Adjacency.natural(graph.indptr, graph.neighbours)
    order = locality_order(natural, graph.n_users)
    switches = np.count_nonzero(np.diff(community[order[:2000]]))
    assert switches < 300 < np.count_nonzero(np.diff(community))


def test_a_slice_of_columns_gives_a_slice_of_the_result() -> None:
    graph = BipartiteGraph(interactions([(0, 0), (0, 1), (1, 0), (2, 2)], 3, 3))
    E = torch.randn(6, 10)
    assert_close(graph @ E[:, 2:5], (graph @ E)[:, 2:5])


def test_a_long_compilation_says_what_it_is_doing_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recurrence, "QUIET_SECONDS", 0.01)
    for _ in range(2):
        with recurrence._explain_waiting("compiling for this test"):
            time.sleep(0.1)
    assert caplog.messages == ["compiling for this test"]


def test_ctrl_c_leaves_no_thread_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    users, items = np.divmod(np.arange(40 * 50), 50)
    graph = BipartiteGraph(Interactions.build(users, items, 40, 50))
    monkeypatch.setattr(blocks, "TEAM_BYTES", 0)  # one team, whose members wait for each other
    monkeypatch.setattr(blocks, "SMALL", 0)
    pull = blocks._Team.pull

    def interrupted(team: blocks._Team, step: tuple[int, int]) -> Iterator[tuple[int, int]]:
        if step[1] == 1 and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return pull(team, step)

    monkeypatch.setattr(blocks._Team, "pull", interrupted)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyboardInterrupt):
            graph.chebyshev_sum(torch.randn(90, 16), [0.5, -1.0, 2.0], None)
    finally:
        torch.set_num_threads(before)


def test_propagating_again_needs_no_new_memory() -> None:
    graph = BipartiteGraph(interactions([(0, 0), (0, 1), (1, 0)], n_users=2, n_items=3))
    E = torch.randn(graph.n_nodes, 64)
    gc.disable()  # a cycle in what a call leaves behind would hold its tables
    try:
        graph.chebyshev_sum(E, [0.5, -1.0, 2.0], E)
        made = len(graph.lists.tables._made)
        kept, _ = graph.chebyshev_sum(E, [0.5, -1.0, 2.0], E)
        assert len(graph.lists.tables._made) == made
        before = kept.clone()
        graph.chebyshev_sum(2 * E, [0.5, -1.0, 2.0], E)
        assert torch.equal(kept, before)  # what somebody still has is not written over
    finally:
        gc.enable()
