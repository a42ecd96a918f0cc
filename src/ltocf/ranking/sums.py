"""Products of vectors with a table, and the best of many sums without those that cannot be among
them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ltocf.ranking.top_k import reached_by_best

Table = NDArray[np.float32]
FEW_VECTORS = 16
SPARE = 64  # that are tried beyond those wanted, so that the bound is a good one
ROUNDING = 1e-4  # of a dot product, relative to the lengths of its vectors; of a sum far less
WORTH_IT = 4  # a table is read as a whole as soon as more than this part of it is needed


def dot_products(vectors: Table, table: Table) -> Table:
    """Of each vector with each row of the table. (len(vectors), len(table))"""
    if 1 < len(vectors) <= FEW_VECTORS:
        # BLAS copies what stands on the right into an order of its own: of the whole table, that
        # takes several times as long as to multiply it by a few vectors.
        return np.ascontiguousarray((table @ vectors.T).T)
    found: Table = vectors @ table.T
    return found


def best_sums(
    first: Table, vectors: Table, table: Table, lengths: Table, most: Sequence[int]
) -> Table:
    """`first + vectors @ table.T`, in which a sum that is not among that many best ones of its row
    may be -inf; exact otherwise. `lengths` are those of the table's rows, and `first` is
    overwritten. (rows, len(table))

    A dot product is at most the product of the lengths of its vectors. The sums of those that are
    best without it give a score that enough of them reach, and whatever cannot reach it with the
    largest possible product is left out.
    """
    whole = []
    for place, (row, vector, wanted) in enumerate(zip(first, vectors, most, strict=True)):
        some = _possible(row, vector, table, lengths, wanted)
        if some is None:
            whole.append(place)
            continue
        sums = _sums(some, row, vector, table)
        row.fill(-np.inf)
        row[some] = sums
    if whole:
        first[whole] += dot_products(vectors[whole], table)
    return first


def _sums(some: NDArray[np.int64], row: Table, vector: Table, table: Table) -> Table:
    """row[some] + table[some] @ vector. Compiled code need not copy that part of the table, but
    takes long to load for those who ask for one list."""
    sums: Table
    if "numba" in sys.modules:
        from ltocf.ranking.kernels import sums_at

        sums = sums_at(some, row, vector, table)
    else:
        sums = row[some] + table[some] @ vector
    return sums


def row_lengths(table: Table) -> Table:
    lengths: Table = np.sqrt(np.einsum("ij,ij->i", table, table))
    return lengths


def _possible(
    row: Table, vector: Table, table: Table, lengths: Table, wanted: int
) -> NDArray[np.int64] | None:
    """Those whose sums may be among the best; none if that is too many to be worth the while."""
    few = len(row) // WORTH_IT
    if wanted + SPARE > few:
        return None
    head = np.flatnonzero(row >= reached_by_best(row, wanted + SPARE))
    if len(head) > few:
        return None
    sums = _sums(head, row, vector, table)
    reached = np.partition(sums, len(sums) - wanted)[len(sums) - wanted]
    farthest = np.float32((1 + ROUNDING) * np.linalg.norm(vector))
    some = np.flatnonzero(row + farthest * lengths >= reached - ROUNDING * abs(reached))
    return some if len(some) <= few else None
