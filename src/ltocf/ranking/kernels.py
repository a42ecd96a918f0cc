"""The compiled ranking: it releases the interpreter lock, so that our own threads share the rows.

Numba's own threads are not used: with its work queue, two requests at once would end the process,
and after a fork they are gone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


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
            at = np.searchsorted(wanted, ranked[b, r])
            out[b, r] = at < len(wanted) and wanted[at] == ranked[b, r]


@njit(cache=True, nogil=True, fastmath=True)
def sums_at(places: Any, first: Any, vector: Any, table: Any) -> Any:
    """first[places] + table[places] @ vector."""
    found = np.empty(len(places), np.float32)
    for p in range(len(places)):
        row, total = table[places[p]], np.float32(0)
        for c in range(len(vector)):
            total += row[c] * vector[c]
        found[p] = first[places[p]] + total
    return found


@njit(cache=True, nogil=True)
def _mask_and_rank(row: Any, owned: Any, items: Any, best: Any) -> None:
    k, chunk = len(best), 64
    for item in owned:
        row[item] = -np.inf
    bound = best[k - 1]  # a variable of its own, or the pass below is not vectorised
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
