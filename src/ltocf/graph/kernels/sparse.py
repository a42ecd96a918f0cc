"""Products of sparse matrices on all threads. SciPy's products hold the interpreter lock and so use
one thread, and they compute every entry, of which neighbourhood models keep only the largest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.histories import sparse_matrix
from ltocf.graph.kernels.vectors import fetch
from ltocf.machine.threads import share_out

CHUNK = 64  # rows that a thread takes at a time, at least
CLEARED = 512  # a chunk clears its tables once: at most so many numbers per row of the chunk
AHEAD, FETCHED, LINE = 8, 3, 16  # rows; cache lines of a row; columns in a line
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its 64 windows of six bits are all different
PLACES = np.zeros(64, np.int64)
PLACES[((1 << np.arange(64, dtype=np.uint64)) * DE_BRUIJN) >> np.uint64(58)] = np.arange(64)


def times(
    rows: csr_array, matrix: csr_array | NDArray[np.float32], *, ones: bool = False
) -> NDArray[np.float32]:
    """rows @ matrix as a dense table, in float32; `ones` says that the matrix has no other entries.
    (rows, columns)"""
    out = np.zeros((rows.shape[0], matrix.shape[1]), np.float32)
    left = _arrays(rows)
    if isinstance(matrix, np.ndarray):
        dense = np.ascontiguousarray(matrix, np.float32)
        share_out(lambda a, b: _add_dense(a, b, *left, dense, out), len(out), CHUNK)
    else:
        if ones:
            # Not converted, which would take as long as the product.
            starts, columns = matrix.indptr, matrix.indices
            share_out(lambda a, b: _add_ones(a, b, *left, starts, columns, out), len(out), CHUNK)
        else:
            right = _arrays(matrix)
            share_out(lambda a, b: _add_sparse(a, b, *left, *right, out), len(out), CHUNK)
    return out


def product(
    left: csr_array, right: csr_array, *, largest: int | None = None, diagonal: bool = True
) -> csr_array:
    """left @ right in float32: all of it, or the `largest` of each row, ties going to the lower
    column; without its diagonal if that is not wanted. Where all are kept, columns ascend."""
    return _product(left, right, largest, diagonal, np.empty(0), 0.0)


def shrunk_cosines(R: csr_array, largest: int, shrinkage: float) -> csr_array:
    """`a.b / (|a| |b| + shrinkage)` for every two different columns of R; the largest for each
    column."""
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
    counts, chunk = np.zeros(n + 1, np.int64), max(CHUNK, columns // CLEARED)
    share_out(lambda a, b: _count(a, b, *arrays, columns, most, diagonal, counts), n, chunk)
    indptr = np.cumsum(counts)
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)

    def fill(first: int, last: int) -> None:
        of_rows = lengths, shrinkage, indptr, indices, values
        _fill(first, last, *arrays, columns, diagonal, *of_rows)

    share_out(fill, n, chunk)
    return sparse_matrix(values, indices, indptr, (n, columns))


def _arrays(matrix: csr_array) -> tuple[Any, Any, Any]:
    """The arrays, always in the same types, so that a kernel is compiled only once."""
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
        row = out[r]
        for p in range(indptr[r], indptr[r + 1]):
            value, middle = values[p], indices[p]
            for q in range(starts[middle], starts[middle + 1]):
                row[np.uint32(columns[q])] += value * entries[q]


# Three times as fast as _add_sparse: it reads half as much, takes four different columns of a row
# at a time, and prefetches rows.
@njit(cache=True, nogil=True, boundscheck=False)
def _add_ones(
    first: Any, last: Any, indptr: Any, indices: Any, values: Any,
    starts: Any, columns: Any, out: Any,
) -> None:  # fmt: skip
    for r in range(first, last):
        row = out[r]
        for p in range(indptr[r], indptr[r + 1]):
            value, middle = values[p], indices[p]
            if p + AHEAD < indptr[r + 1]:
                later = starts[indices[p + AHEAD]]
                for line in range(FETCHED):
                    fetch(columns, later + LINE * line)
            theirs = columns[starts[middle] : starts[middle + 1]]
            count = len(theirs)
            whole = count - count % 4
            for q in range(0, whole, 4):
                a, b = np.uint32(theirs[q]), np.uint32(theirs[q + 1])
                c, d = np.uint32(theirs[q + 2]), np.uint32(theirs[q + 3])
                at_a, at_b, at_c, at_d = row[a], row[b], row[c], row[d]
                row[a], row[b] = at_a + value, at_b + value
                row[c], row[d] = at_c + value, at_d + value
            for q in range(whole, count):
                row[np.uint32(theirs[q])] += value


# Which columns of a row have been touched is kept in 64 bits a word, and which words have any bit
# in 64 bits more. So they are found in ascending order without sorting, and a matrix whose rows are
# in order is multiplied three times as fast. An unsigned index needs no test for negative ones.
@njit(cache=True, nogil=True, boundscheck=False)
def touch(bits: Any, words: Any, column: Any) -> None:
    word = np.uint32(column) >> np.uint32(6)
    bits[word] |= np.uint64(1) << np.uint64(np.uint32(column) & np.uint32(63))
    words[word >> np.uint32(6)] |= np.uint64(1) << np.uint64(word & np.uint32(63))


@njit(cache=True, nogil=True, boundscheck=False)
def _lowest(bits: Any) -> Any:
    """The place of the lowest bit, by de Bruijn's sequence."""
    alone = bits & (~bits + np.uint64(1))
    return PLACES[(alone * DE_BRUIJN) >> np.uint64(58)]


@njit(cache=True, nogil=True, boundscheck=False)
def take_touched(bits: Any, words: Any, out: Any) -> Any:
    """Write the touched columns to `out`, reset them, and return how many they are."""
    count = 0
    for group in range(len(words)):
        left = words[group]
        words[group] = 0
        while left:
            word = 64 * group + _lowest(left)
            left &= left - np.uint64(1)
            inside = bits[word]
            bits[word] = 0
            while inside:
                out[count] = 64 * word + _lowest(inside)
                inside &= inside - np.uint64(1)
                count += 1
    return count


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
                column = np.uint32(columns[q])
                count += seen_by[column] != r
                seen_by[column] = r
        counts[r + 1] = min(count, most)


@njit(cache=True, nogil=True, boundscheck=False)
def _fill(
    first: Any, last: Any, indptr: Any, indices: Any, values: Any,
    starts: Any, columns: Any, entries: Any,
    n_columns: Any, diagonal: Any, lengths: Any, shrinkage: Any,
    out_indptr: Any, out_indices: Any, out_values: Any,
) -> None:  # fmt: skip
    row, touched = np.zeros(n_columns, np.float32), np.empty(n_columns, np.int32)
    found, scratch = np.empty(n_columns, np.float32), np.empty(n_columns, np.float32)
    bits = np.zeros(n_columns // 64 + 1, np.uint64)
    words = np.zeros(len(bits) // 64 + 1, np.uint64)
    for r in range(first, last):
        for p in range(indptr[r], indptr[r + 1]):
            value = values[p]
            for q in range(starts[indices[p]], starts[indices[p] + 1]):
                touch(bits, words, columns[q])
                row[np.uint32(columns[q])] += value * entries[q]
        if not diagonal and r < n_columns:
            bits[r >> 6] &= ~(np.uint64(1) << np.uint64(r & 63))
            row[r] = 0
        count = take_touched(bits, words, touched)
        for t in range(count):
            column = touched[t]
            found[t] = row[column]
            row[column] = 0
            if len(lengths):
                found[t] /= lengths[r] * lengths[column] + shrinkage
        kept = slice(out_indptr[r], out_indptr[r + 1])
        keep_largest(found[:count], touched[:count], scratch, out_values[kept], out_indices[kept])


@njit(cache=True, nogil=True, boundscheck=False)
def keep_largest(values: Any, columns: Any, scratch: Any, kept: Any, where: Any) -> None:
    """Write the largest of some values to `kept`, as many as it has room for, and their columns to
    `where`. Of equal values the first are kept, in their order.

    Written by hand: Numba takes a quarter of a minute to compile NumPy's sorting and partitioning.
    """
    most, n = len(kept), len(values)
    if n <= most:
        kept[:n], where[:n] = values, columns
        return
    scratch[:n] = values
    bound = select(scratch, n, most - 1)
    above = 0
    for t in range(n):
        above += values[t] > bound
    ties, size = most - above, 0
    for t in range(n):
        value = values[t]
        if value > bound or (value == bound and ties > 0):
            ties -= value == bound
            kept[size], where[size] = value, columns[t]
            size += 1


@njit(cache=True, nogil=True, boundscheck=False)
def select(values: Any, n: Any, place: Any) -> Any:
    """The value at this place of the first n in descending order, which are partly sorted: Hoare's
    algorithm."""
    low, high = 0, n - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while pivot > values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]
