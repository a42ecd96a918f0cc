"""Many small systems of equations, one for each row of a sparse matrix, solved by compiled code."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

PART = 1024  # entries of a row that are gathered at a time


@numba.njit(nogil=True, cache=True)
def solve(
    start: Any, stop: Any, indptr: Any, indices: Any, weights: Any,
    others: Any, gram: Any, ridges: Any, out: Any,
) -> None:  # fmt: skip
    """Each row's (gram + sum s h h^T + ridge) w = sum s h, by Cholesky."""
    dim = others.shape[1]
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        if first == last:
            continue  # nothing is known: zeros
        A = gram.copy()
        b = np.zeros(dim, np.float32)
        for begin in range(first, last, PART):
            end = min(begin + PART, last)
            near = np.empty((end - begin, dim), np.float32)
            weighted = np.empty_like(near)
            for entry in range(begin, end):
                for k in range(dim):
                    value = others[indices[entry], k]
                    near[entry - begin, k] = value
                    weighted[entry - begin, k] = weights[entry] * value
                    b[k] += weights[entry] * value
            A += near.T @ weighted
        for k in range(dim):
            A[k, k] += ridges[row]
        L = np.linalg.cholesky(A)
        for a in range(dim):  # L y = b
            total = b[a]
            for k in range(a):
                total -= L[a, k] * b[k]
            b[a] = total / L[a, a]
        for a in range(dim - 1, -1, -1):  # L^T w = y
            b[a] /= L[a, a]
            for k in range(a):
                b[k] -= L[a, k] * b[a]
        out[row] = b
