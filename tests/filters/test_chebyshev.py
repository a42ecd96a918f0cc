"""The Chebyshev filter, against dense functions of dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev
from torch import Tensor
from torch.testing import assert_close

from ltocf.errors import ConfigError
from ltocf.filters.chebyshev import (
    chebyshev_coefficients,
    chebyshev_filter,
    chebyshev_nodes,
    divide_by_x,
    evaluate,
    fit_response,
)
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.ode.solvers import find_solver
from tests.graph.test_bipartite import dense, graphs, interactions

SERIES = st.lists(st.floats(-3, 3), min_size=1, max_size=12)


def tensor(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@settings(deadline=None)
@given(SERIES)
def test_coefficients_of_a_polynomial_are_found_again(series: list[float]) -> None:
    values = chebyshev.chebval(chebyshev_nodes(20).numpy(), series)
    found = chebyshev_coefficients(torch.from_numpy(np.atleast_1d(values)), tolerance=0)
    padded = torch.zeros(2, 20, dtype=torch.float64)
    padded[0, : len(found)], padded[1, : len(series)] = found, tensor(series)
    assert_close(padded[0], padded[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("tolerance", [3e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("depth", [4.0, 5.0, 8.0])
def test_the_series_is_within_its_tolerance_relative_to_the_response_at_every_point(
    tolerance: float, depth: float
) -> None:
    def response(x: Tensor) -> Tensor:
        times = tensor([0, depth / 4, depth / 2, 3 * depth / 4, depth])
        return find_solver("rk4").states(x, times, "linear").mean(0)

    x = torch.linspace(-1, 1, 201, dtype=torch.float64)
    coefficients, true = fit_response(response, tolerance), response(x)
    size = true.abs().clamp(min=1e-2 * float(true.max()))
    assert ((evaluate(coefficients, x) - true).abs() / size).max() <= 1.05 * tolerance
    cut_off = chebyshev_coefficients(response(chebyshev_nodes(64)), 0)[: len(coefficients) - 1]
    # One product with the graph less, and a series that is cut off would be beyond it.
    assert ((evaluate(cut_off, x) - true).abs() / size).max() > tolerance


def test_a_response_with_a_pole_is_refused() -> None:
    with pytest.raises(ConfigError, match="not smooth to tolerance=1e-06"):
        fit_response(lambda x: 1 / (x - 0.3).abs(), 1e-6)


@settings(deadline=None)
@given(SERIES)
def test_dividing_by_x_undoes_multiplying_by_it(series: list[float]) -> None:
    x = torch.linspace(-1, 1, 21, dtype=torch.float64)
    h = tensor(series)
    at_zero = evaluate(h, tensor([0.0]))
    assert_close(at_zero + x * evaluate(divide_by_x(h), x), evaluate(h, x), rtol=0, atol=1e-11)


@settings(deadline=None, max_examples=40)
@given(graphs(), SERIES, st.sampled_from([1, 5, 24]))
def test_the_filter_is_the_function_of_the_matrix(
    graph: BipartiteGraph, series: list[float], dim: int
) -> None:
    eigenvalues, vectors = torch.linalg.eigh(dense(graph))
    h = torch.from_numpy(chebyshev.chebval(eigenvalues.numpy(), series))
    E = torch.randn(graph.n_nodes, dim, dtype=torch.float64)
    expected = vectors @ (h[:, None] * (vectors.T @ E))
    assert_close(chebyshev_filter(graph, E, tensor(series)), expected, rtol=0, atol=1e-11)


def test_a_node_without_neighbours_keeps_its_own_vector_times_h_of_zero() -> None:
    graph = BipartiteGraph(interactions([(0, 0)], n_users=2, n_items=1))
    E = torch.randn(3, 4, dtype=torch.float64)
    series = tensor([0.5, 2.0, 0.25, -1.0, 3.0])  # h(0) = 0.5 - 0.25 + 3
    assert_close(chebyshev_filter(graph, E, series)[1], 3.25 * E[1])


@settings(deadline=None, max_examples=15)
@given(graphs(), st.integers(1, 5))
def test_gradients_by_finite_differences(graph: BipartiteGraph, degree: int) -> None:
    E = torch.randn(graph.n_nodes, 2, dtype=torch.float64, requires_grad=True)
    series = torch.randn(degree + 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda E, c: chebyshev_filter(graph, E, c), (E, series))


def test_the_exponential_is_scipys() -> None:
    rng = np.random.default_rng(5)
    pairs = [(int(u), int(i)) for u, i in rng.integers(0, 12, (50, 2))]
    graph = BipartiteGraph(interactions(pairs, 12, 12))
    E = torch.randn(24, 3, dtype=torch.float64)
    ours = chebyshev_filter(graph, E, fit_response(lambda x: torch.exp(2.5 * x), 1e-15))
    theirs = scipy.linalg.expm(2.5 * dense(graph).numpy()) @ E.numpy()
    assert_close(ours, torch.from_numpy(theirs), rtol=1e-12, atol=1e-12)


def test_coefficients_that_need_no_gradient_cost_no_inner_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = BipartiteGraph(interactions([(0, 0), (1, 0)], 2, 1))
    others = []
    original = BipartiteGraph.chebyshev_sum

    def spy(self: BipartiteGraph, E: Tensor, c: list[float], other: Tensor | None = None) -> object:
        others.append(other)
        return original(self, E, c, other)

    monkeypatch.setattr(BipartiteGraph, "chebyshev_sum", spy)
    E = torch.randn(3, 2, requires_grad=True)
    chebyshev_filter(graph, E, torch.ones(3)).sum().backward()
    assert others == [None, None]
