"""Products of vectors with a table, and the best of many sums without computing sums that cannot be
among them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ltocf.ranking.top_k import reached_by_best

Table = NDArray[np.float32]
FEW_VECTORS = 16
SPARE = 64  # sums computed beyond those wanted, for a better bound
ROUNDING = 1e-4  # largest rounding error of a dot product, relative to the lengths of its vectors
WORTH_IT = 4  # if more than 1 / 4 of a table is needed, it is read as a whole


def dot_products(vectors: Table, table: Table) -> Table:
    """The products of each vector with each row of the table. (len(vectors), len(table))"""
    if 1 < len(vectors) <= FEW_VECTORS:
        # BLAS copies its right operand into an order of its own. For the whole table, that takes
        # several times as long as multiplying it by a few vectors.
        return np.ascontiguousarray((table @ vectors.T).T)
    found: Table = vectors @ table.T
    return found


def best_sums(
    first: Table, vectors: Table, table: Table, lengths: Table, most: Sequence[int]
) -> Table:
    """`first + vectors @ table.T`, in which a sum that is not among that many best ones of its row
    may be -inf; exact otherwise. `lengths` are those of the table's rows, and `first` is
    overwritten. (rows, len(table))

    A dot product is at most the product of the lengths of its vectors. The full sums of the items
    that are best without the product give a score that enough items reach. Items that cannot reach
    it even with the largest possible product are left out.
    """
    whole = []
    for place, (row, vector, wanted) in enumerate(zip(first, vectors, most, strict=True)):
        few = len(row) // WORTH_IT
        if wanted + SPARE > few:
            whole.append(place)
            continue
        bound = reached_by_best(row, wanted + SPARE)
        farthest = np.float32((1 + ROUNDING) * np.linalg.norm(vector))
        if not _leave_out_(row, vector, table, lengths, wanted, few, bound, farthest):
            whole.append(place)
    if whole:
        first[whole] += dot_products(vectors[whole], table)
    return first


def row_lengths(table: Table) -> Table:
    lengths: Table = np.sqrt(np.einsum("ij,ij->i", table, table))
    return lengths


def _leave_out_(
    row: Table, vector: Table, table: Table, lengths: Table, wanted: int, few: int,
    bound: np.float32, farthest: np.float32,
) -> bool:  # fmt: skip
    """Write the few sums that matter into `row`. Returns False, and leaves `row` as it
    was, if there are too many for that to be faster. Items that reach `bound` without the product
    come first.

    Compiled code passes over the row only twice and copies no part of the table. It takes long to
    load, so it is used only if numba is loaded already.
    """
    if "numba" in sys.modules:
        from ltocf.ranking.kernels import leave_out_

        return bool(
            leave_out_(row, vector, table.ravel(), lengths, wanted, few, bound, farthest, ROUNDING)
        )
    head = np.flatnonzero(row >= bound)
    if len(head) > few:
        return False
    sums = row[head] + table[head] @ vector
    reached = np.partition(sums, len(sums) - wanted)[len(sums) - wanted]
    some = np.flatnonzero(row + farthest * lengths >= reached - ROUNDING * abs(reached))
    if len(some) > few:
        return False
    sums = row[some] + table[some] @ vector
    row.fill(-np.inf)
    row[some] = sums
    return True
