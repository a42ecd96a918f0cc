"""Compiled CPU kernels: rows of the Chebyshev recurrence on a graph, for one range of rows.

The normalised adjacency is A = S B S, B of zeros and ones and S = D^-1/2, so the recurrence runs
on Z_k = S T_k(A) E: it needs the neighbours and the degrees, and never the values of A.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

Kernel = Callable[..., Any]


@cache
def step_kernel(dim: int) -> Kernel:
    """The kernel for tables of `dim` columns, compiled at its first call and kept on disk."""

    @numba.njit(nogil=True, fastmath=True, boundscheck=False, cache=True)
    def step(  # type: ignore[no-untyped-def]
        start, stop, indptr, neighbours, scale, current, previous, alpha, beta, weight, out, other
    ):
        """previous = alpha D^-1 B current - beta previous; out += weight previous; and the inner
        product of that previous with other."""
        total = 0.0
        with_other = other.shape[0] > 0
        acc = np.empty(dim, current.dtype)
        for row in range(start, stop):
            for j in range(dim):
                acc[j] = 0
            for edge in range(indptr[row], indptr[row + 1]):
                neighbour = neighbours[edge]
                for j in range(dim):
                    acc[j] += current[neighbour, j]
            factor = alpha * scale[row]
            for j in range(dim):
                value = factor * acc[j] - beta * previous[row, j]
                previous[row, j] = value
                out[row, j] += weight * value
            if with_other:
                product = previous[row, 0] * other[row, 0]
                for j in range(1, dim):
                    product += previous[row, j] * other[row, j]
                total += product
        return total

    return step
