"""Filters of the item graph P = N^T N, through the filter of the whole graph.

P is the items' block of A^2, so h(P) X is the items' block of the Chebyshev filter of A with the
even response h(x^2). The same recurrence that propagates LT-OCF's embeddings serves here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from numpy.polynomial.chebyshev import chebval
from torch import Tensor

from ltocf.filters.chebyshev import chebyshev_coefficients, chebyshev_nodes
from ltocf.graph.bipartite import BipartiteGraph

Response = Callable[[Tensor], Tensor]  # of the eigenvalues of P, on [0, 1], in float64
COLUMNS = 64  # filtered at a time, so that the tables of the recurrence stay in the cache


class DeflatedFilter(NamedTuple):
    """h(P) = p(P) + V diag(excess) V^T, where p is a polynomial of low degree and V holds the
    leading eigenvectors of P."""

    coefficients: Tensor  # of p(x^2) as a Chebyshev series on A
    excess: Tensor  # (rank,)


def deflate(response: Response, values: Tensor, degree: int) -> DeflatedFilter:
    """Split h into a polynomial p and an excess for the leading eigenvalues of P (descending).

    p interpolates h on [0, the smallest of the values], a short interval on which a low degree is
    enough. On the leading eigenvectors the excess makes the sum exact. If h is itself a polynomial
    of at most `degree`, the excess is zero.
    """
    reach = max(float(values[-1]), 1e-6) if len(values) else 1.0
    samples = response(reach * (chebyshev_nodes(degree + 1) + 1) / 2)
    series = chebyshev_coefficients(samples, tolerance=0).numpy()

    def polynomial(x: Tensor) -> Tensor:  # also beyond `reach`, where it differs from h
        return torch.from_numpy(chebval((2 / reach) * x.numpy() - 1, series))

    nodes = chebyshev_nodes(2 * degree + 1)
    coefficients = chebyshev_coefficients(polynomial(nodes**2), tolerance=0)
    return DeflatedFilter(coefficients, response(values) - polynomial(values))


def filter_items(graph: BipartiteGraph, X: Tensor, coefficients: Tensor) -> Tensor:
    """The items' block of the filter of A, for signals on items. (n_items, any)

    Memory beyond the result: four tables of (n_users + n_items, 64).
    """
    out = torch.empty(graph.n_items, X.shape[1], dtype=X.dtype)
    for start in range(0, X.shape[1], COLUMNS):
        part = X[:, start : start + COLUMNS]
        E = torch.zeros(graph.n_nodes, part.shape[1], dtype=X.dtype)
        E[graph.n_users :] = part
        filtered = graph.chebyshev_sum(E, coefficients.tolist())[0]
        out[:, start : start + COLUMNS] = filtered[graph.n_users :]
    return out
