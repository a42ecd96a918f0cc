"""Chebyshev filters of the graph: h(A) E = sum_k c_k T_k(A) E, one sparse product a degree."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.grid import GridGraph

FIRST_NODES, MOST_NODES = 32, 1024  # samples of a response: doubled until they are enough
ROUNDING = 1e-10  # least squares cannot be more exact than about this
SMALL = 1e-2  # values of a response below this share of its largest count as this large


def chebyshev_nodes(n: int) -> Tensor:
    """The n zeros of T_n, inside (-1, 1), in float64. (n,)"""
    return torch.cos(math.pi * (torch.arange(n, dtype=torch.float64) + 0.5) / n)


def chebyshev_coefficients(values_at_nodes: Tensor, tolerance: float) -> Tensor:
    """c_0..c_m of the interpolant through the values; the tail that is within the tolerance is cut.

    The tolerance is relative to the largest value, so it bounds the filter's relative error.
    """
    transform = _cosine_transform(len(values_at_nodes))
    coefficients = transform.to(values_at_nodes) @ values_at_nodes
    size = coefficients.detach().abs()
    tail = size.flip(0).cumsum(0).flip(0)  # tail[k] = |c_k| + |c_{k+1}| + ...
    kept = int((tail > tolerance * values_at_nodes.detach().abs().max()).sum())
    return coefficients[: max(kept, 1)]


@cache
def _cosine_transform(n: int) -> Tensor:
    """The matrix from values at the nodes to coefficients. (n, n)"""
    order = torch.arange(n, dtype=torch.float64)
    transform = torch.cos(math.pi / n * order[:, None] * (order + 0.5)) * (2 / n)
    transform[0] /= 2
    return transform


def fit_response(response: Callable[[Tensor], Tensor], tolerance: float) -> Tensor:
    """Chebyshev coefficients of a function on [-1, 1]: the lowest degree whose error at every x is
    within the tolerance, relative to the function's value there.

    Most eigenvalues of a graph are small, and there a deep response is a small share of its largest
    value. An error that is small relative to the largest value would be large for most of them, so
    the error is measured relative to each value, with values below `SMALL` of the largest counting
    as that much. A least-squares fit with these weights needs one product with the graph fewer than
    a truncated series.
    """
    n = FIRST_NODES
    while n <= MOST_NODES:
        values = response(chebyshev_nodes(n)).cpu()  # a few scalars, wherever the times are
        # A fit cannot be this exact because of rounding; a truncated series can.
        if tolerance < ROUNDING:
            coefficients = chebyshev_coefficients(values, tolerance)
            if len(coefficients) <= n - 4:
                return coefficients
            n *= 2
            continue
        size = values.detach().abs()
        weights = 1 / size.clamp(min=SMALL * float(size.max()))
        # With at most half as many coefficients as samples, a fit that is good at the samples is
        # good between them too.
        for degree in range(_shortest(values.detach(), tolerance), n // 2):
            coefficients = _least_squares(n, degree, weights) @ values
            difference = _basis(n)[:, : degree + 1] @ coefficients.detach() - values.detach()
            if float((difference * weights).abs().max()) <= tolerance:
                return coefficients
        n *= 2
    raise ConfigError(
        f"the response is not smooth to tolerance={tolerance!r} with {MOST_NODES} samples; "
        "use a larger tolerance or smaller steps"
    )


def _shortest(values: Tensor, tolerance: float) -> int:
    """A degree to start from. A lower one would miss the tolerance even relative to the largest
    value alone."""
    return max(len(chebyshev_coefficients(values, 4 * tolerance)) - 3, 0)


def _least_squares(n: int, degree: int, weights: Tensor) -> Tensor:
    """The matrix from values at n nodes to the coefficients of the weighted fit. (degree + 1, n)"""
    inverse: Tensor = torch.linalg.pinv(weights[:, None] * _basis(n)[:, : degree + 1])
    return inverse * weights


@cache
def _basis(n: int) -> Tensor:
    """T_k at the nodes. (n, n)"""
    order = torch.arange(n, dtype=torch.float64)
    return torch.cos(math.pi / n * (order[:, None] + 0.5) * order)


def divide_by_x(coefficients: Tensor) -> Tensor:
    """The coefficients of g, where h(x) = h(0) + x g(x) and h has the given coefficients."""
    c = [*coefficients.unbind(), *coefficients.new_zeros(2).unbind()]
    g = [coefficients.new_zeros(()) for _ in range(len(coefficients) + 2)]
    # x T_k = (T_{k-1} + T_{k+1}) / 2, read from the highest degree down.
    for k in range(len(coefficients) - 1, 1, -1):
        g[k - 1] = 2 * c[k] - g[k + 1]
    g[0] = c[1] - g[2] / 2
    return torch.stack(g[: max(len(coefficients) - 1, 1)])


def evaluate(coefficients: Tensor, x: Tensor) -> Tensor:
    """h(x) of the Chebyshev series, for x in [-1, 1]."""
    order = torch.arange(len(coefficients), dtype=x.dtype)
    return torch.cos(order * torch.arccos(x)[:, None]) @ coefficients.to(x.dtype)


def chebyshev_filter(graph: BipartiteGraph | GridGraph, E: Tensor, coefficients: Tensor) -> Tensor:
    """h(A) E, differentiable in E and in the coefficients. (n_nodes, dim)"""
    filtered: Tensor = _Filter.apply(graph, E, coefficients)  # type: ignore[no-untyped-call]
    return filtered


class _Filter(torch.autograd.Function):
    """A is symmetric, so the gradient with respect to E is the same filter applied to the gradient
    G. Its recurrence computes every T_k(A) G anyway, so dL/dc_k = <T_k(A) G, E> costs only an inner
    product each."""

    @staticmethod
    def forward(
        ctx: Any, graph: BipartiteGraph | GridGraph, E: Tensor, coefficients: Tensor
    ) -> Tensor:
        ctx.graph = graph
        ctx.save_for_backward(E, coefficients)
        return graph.chebyshev_sum(E, coefficients.tolist())[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        E, coefficients = ctx.saved_tensors
        other = E if ctx.needs_input_grad[2] else None
        gradient, products = ctx.graph.chebyshev_sum(G, coefficients.tolist(), other)
        by_coefficient = coefficients.new_tensor(products) if products else None
        return None, gradient, by_coefficient
