"""Products of sparse matrices on all threads. SciPy's hold the interpreter lock, so that they use
one, and make every entry of a product, of which neighbourhood models keep the largest alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.machine.threads import share_out

CHUNK = 64  # rows that a thread takes at a time


def times(rows: csr_array, matrix: csr_array | NDArray[np.float32]) -> NDArray[np.float32]:
    """rows @ matrix as a dense table, in float32. (rows, columns)"""
    out = np.zeros((rows.shape[0], matrix.shape[1]), np.float32)
    left = _arrays(rows)
    if isinstance(matrix, np.ndarray):
        dense = np.ascontiguousarray(matrix, np.float32)
        share_out(lambda a, b: _add_dense(a, b, *left, dense, out), len(out), CHUNK)
    else:
        right = _arrays(matrix)
        share_out(lambda a, b: _add_sparse(a, b, *left, *right, out), len(out), CHUNK)
    return out


def product(
    left: csr_array, right: csr_array, *, largest: int | None = None, diagonal: bool = True
) -> csr_array:
    """left @ right in float32: all of it, or the `largest` of each row, ties going to the lower
    column; without its diagonal if that is not wanted. The columns of a row are in no order."""
    return _product(left, right, largest, diagonal, np.empty(0), 0.0)


def shrunk_cosines(R: csr_array, largest: int, shrinkage: float) -> csr_array:
    """Of every two columns of R, `a.b / (|a| |b| + shrinkage)`: the largest of each, without its
    own."""
    lengths = np.sqrt(squares_of_columns(R))
    return _product(csr_array(R.T), R, largest, False, lengths, shrinkage)


def squares_of_columns(R: csr_array) -> NDArray[np.float64]:
    """The squared lengths of the columns; for ones, the degrees."""
    squares = np.square(R.data, dtype=np.float64)
    return np.bincount(R.indices, squares, minlength=R.shape[1]).astype(np.float64)


def _product(
    left: csr_array, right: csr_array, largest: int | None, diagonal: bool,
    lengths: NDArray[np.float64], shrinkage: float,
) -> csr_array:  # fmt: skip
    """With lengths, each entry is divided by those of its row and column, and `shrinkage`."""
    n, columns = left.shape[0], right.shape[1]
    most = columns if largest is None else min(largest, columns)
    arrays = (*_arrays(left), *_arrays(right))
    counts = np.zeros(n + 1, np.int64)
    share_out(lambda a, b: _count(a, b, *arrays, columns, most, diagonal, counts), n, CHUNK)
    indptr = np.cumsum(counts)
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)

    def fill(first: int, last: int) -> None:
        of_rows = lengths, shrinkage, indptr, indices, values
        _fill(first, last, *arrays, columns, diagonal, *of_rows)

    share_out(fill, n, CHUNK)
    return csr_array((values, indices, indptr), shape=(n, columns))


def _arrays(matrix: csr_array) -> tuple[Any, Any, Any]:
    """One type of each, whatever SciPy chose, so that a kernel is compiled once."""
    return (
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data.astype(np.float32, copy=False),
    )


@njit(cache=True, nogil=True, boundscheck=False)
def _add_dense(
    first: Any, last: Any, indptr: Any, indices: Any, values: Any, dense: Any, out: Any
) -> None:
    for r in range(first, last):
        for p in range(indptr[r], indptr[r + 1]):
            value, row = values[p], dense[indices[p]]
            for c in range(len(row)):
                out[r, c] += value * row[c]


@njit(cache=True, nogil=True, boundscheck=False)
def _add_sparse(
    first: Any, last: Any, indptr: Any, indices: Any, values: Any,
    starts: Any, columns: Any, entries: Any, out: Any,
) -> None:  # fmt: skip
    for r in range(first, last):
        for p in range(indptr[r], indptr[r + 1]):
            value, middle = values[p], indices[p]
            for q in range(starts[middle], starts[middle + 1]):
                out[r, columns[q]] += value * entries[q]


@njit(cache=True, nogil=True, boundscheck=False)
def _count(
    first: Any, last: Any, indptr: Any, indices: Any, values: Any,
    starts: Any, columns: Any, entries: Any,
    n_columns: Any, most: Any, diagonal: Any, counts: Any,
) -> None:  # fmt: skip
    """How many entries each row of the product keeps."""
    seen_by = np.full(n_columns, -1, np.int64)
    for r in range(first, last):
        count = 0
        if not diagonal and r < n_columns:
            seen_by[r] = r
        for p in range(indptr[r], indptr[r + 1]):
            for q in range(starts[indices[p]], starts[indices[p] + 1]):
                if seen_by[columns[q]] != r:
                    seen_by[columns[q]] = r
                    count += 1
        counts[r + 1] = min(count, most)


@njit(cache=True, nogil=True, boundscheck=False)
def _fill(
    first: Any, last: Any, indptr: Any, indices: Any, values: Any,
    starts: Any, columns: Any, entries: Any,
    n_columns: Any, diagonal: Any, lengths: Any, shrinkage: Any,
    out_indptr: Any, out_indices: Any, out_values: Any,
) -> None:  # fmt: skip
    row, seen = np.zeros(n_columns, np.float32), np.zeros(n_columns, np.bool_)
    touched = np.empty(n_columns, np.int32)
    for r in range(first, last):
        count = 0
        for p in range(indptr[r], indptr[r + 1]):
            value = values[p]
            for q in range(starts[indices[p]], starts[indices[p] + 1]):
                column = columns[q]
                if not seen[column]:
                    seen[column] = True
                    touched[count] = column
                    count += 1
                row[column] += value * entries[q]
        first_place, size = out_indptr[r], 0
        most = out_indptr[r + 1] - first_place
        kept = out_values[first_place : first_place + most]
        where = out_indices[first_place : first_place + most]
        for t in range(count):
            column = touched[t]
            value = row[column]
            row[column], seen[column] = 0, False
            if column == r and not diagonal:
                continue
            if len(lengths):
                value = np.float32(value / (lengths[r] * lengths[column] + shrinkage))
            size = keep_largest(kept, where, size, value, column)


@njit(cache=True, nogil=True, boundscheck=False)
def keep_largest(values: Any, columns: Any, size: Any, value: Any, column: Any) -> Any:
    """Put an entry among the `size` that are kept, if there is room or it is larger than one of
    them, which it replaces; how many there are then. Of equal ones the lower columns stay.

    A heap by hand: Numba takes a quarter of a minute to compile NumPy's sorting and partitioning.
    """
    most = len(values)
    if size < most:
        values[size], columns[size] = value, column
        if size + 1 == most:
            for root in range(most // 2 - 1, -1, -1):
                _sift(values, columns, root)
        return size + 1
    if _below(values[0], columns[0], value, column):
        values[0], columns[0] = value, column
        _sift(values, columns, 0)
    return size


@njit(cache=True, nogil=True, boundscheck=False)
def _below(value: Any, column: Any, other: Any, other_column: Any) -> Any:
    return value < other or (value == other and column > other_column)


@njit(cache=True, nogil=True, boundscheck=False)
def _sift(values: Any, columns: Any, root: Any) -> None:
    """Restore the heap below this place: what would be dropped first stands at its top."""
    value, column, n = values[root], columns[root], len(values)
    while True:
        child = 2 * root + 1
        if child >= n:
            break
        if child + 1 < n and _below(
            values[child + 1], columns[child + 1], values[child], columns[child]
        ):
            child += 1
        if not _below(values[child], columns[child], value, column):
            break
        values[root], columns[root] = values[child], columns[child]
        root = child
    values[root], columns[root] = value, column
