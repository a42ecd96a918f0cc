"""The compiled ranking. It releases the interpreter lock, so that our own threads can share the
rows.

Numba's own threads are not used: with its work queue, two requests at once would abort the process,
and a forked child has none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ltocf.graph.kernels.sparse import select
from ltocf.graph.kernels.vectors import fetch


@njit(cache=True, nogil=True)
def has(owned: Any, item: Any) -> Any:
    """Whether an item is among these, which are sorted."""
    at = np.searchsorted(owned, item)
    return at < len(owned) and owned[at] == item


@njit(cache=True, nogil=True)
def rank_rows(
    first: Any, last: Any, scores: Any, indptr: Any, seen: Any, rows: Any, items: Any, best: Any
) -> None:
    """Mask what each row has seen and insert the rest into the lists `items` and `best`."""
    for b in range(first, last):
        owned = seen[indptr[rows[b]] : indptr[rows[b] + 1]]
        _mask_and_rank(scores[b], owned, items[b], best[b])


@njit(cache=True, nogil=True)
def find_rows(
    first: Any, last: Any, ranked: Any, users: Any, indptr: Any, items: Any, out: Any
) -> None:
    """Whether each item of a list is one of the user's."""
    for b in range(first, last):
        wanted = items[indptr[users[b]] : indptr[users[b] + 1]]
        for r in range(ranked.shape[1]):
            out[b, r] = has(wanted, ranked[b, r])


@njit(cache=True, nogil=True)
def leave_out_(
    row: Any, vector: Any, table: Any, lengths: Any, wanted: Any, few: Any,
    bound: Any, farthest: Any, rounding: Any,
) -> Any:  # fmt: skip
    """See `sums.py`; `table` is the table row by row."""
    places, sums = np.empty(few, np.int32), np.empty(few, np.float32)
    count = _reaching(row, lengths, np.float32(0), bound, places)
    if count < 0:
        return False
    _add_products(places[:count], row, vector, table, sums)
    reached = select(sums, count, wanted - 1)
    least = np.float32(reached - rounding * abs(reached))
    count = _reaching(row, lengths, farthest, least, places)
    if count < 0:
        return False
    _add_products(places[:count], row, vector, table, sums)
    row[:] = -np.inf
    for p in range(count):
        row[places[p]] = sums[p]
    return True


@njit(cache=True, nogil=True)
def _reaching(row: Any, lengths: Any, farthest: Any, least: Any, places: Any) -> Any:
    """Write the places where `row + farthest * lengths` reaches the bound, and return their number;
    -1 if there is no room for them."""
    count, chunk = 0, 64
    for start in range(0, len(row), chunk):
        part, theirs = row[start : start + chunk], lengths[start : start + chunk]
        above = 0
        for i in range(len(part)):
            above += part[i] + farthest * theirs[i] >= least
        if above == 0:  # one vectorised pass skips a chunk
            continue
        if count + above > len(places):
            return -1
        for i in range(len(part)):
            if part[i] + farthest * theirs[i] >= least:
                places[count] = start + i
                count += 1
    return count


@njit(cache=True, nogil=True, fastmath=True)
def _add_products(places: Any, row: Any, vector: Any, table: Any, sums: Any) -> None:
    n = len(vector)
    for p in range(len(places)):
        # Only the beginning of a row; the processor then prefetches the rest.
        if p + 2 < len(places):
            later = n * np.int64(places[p + 2])
            for c in range(0, min(n, 64), 16):
                fetch(table, later + c)
        theirs, total = table[n * np.int64(places[p]) :][:n], np.float32(0)
        for c in range(n):
            total += theirs[c] * vector[c]
        sums[p] = row[places[p]] + total


@njit(cache=True, nogil=True)
def _mask_and_rank(row: Any, owned: Any, items: Any, best: Any) -> None:
    k, chunk = len(best), 64
    for item in owned:
        row[item] = -np.inf
    bound = best[k - 1]  # a local variable: otherwise the pass below is not vectorised
    # Nearly every chunk has no score above the k-th best so far: one vectorised pass skips it.
    for start in range(0, row.shape[0], chunk):
        part = row[start : min(start + chunk, row.shape[0])]
        above = 0
        for i in range(len(part)):
            above += part[i] > bound
        if above == 0:
            continue
        for i in range(len(part)):
            score = part[i]
            if score > bound:
                place = k - 1
                while place > 0 and best[place - 1] < score:
                    best[place] = best[place - 1]
                    items[place] = items[place - 1]
                    place -= 1
                best[place] = score
                items[place] = start + i
                bound = best[k - 1]
