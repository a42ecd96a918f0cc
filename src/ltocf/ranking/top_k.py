"""Scores -> lists: masked top-k, the one place where it is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions, Rows
from ltocf.errors import ConfigError
from ltocf.machine.threads import share_out

# A tile of scores: large enough for an efficient matrix product, small enough to stay cached.
TILE_BYTES = 32 * 2**20
# Up to so many, one thread is done before another has woken up (milliseconds on a busy machine).
FEW = 2**20
PART = 32  # scores per part; the best score of each part is looked at first
MANY = 512  # users for whom it pays to bring items into the order that `packed.py` reads
CHUNK = 4096  # of those users, ranked at a time
WIDEST = 1024  # dimensions of vectors of which a block of items stays cached


class Products(NamedTuple):
    """Vectors whose products are scores."""

    items: NDArray[np.float32]  # (n_items, dim)
    of_users: Callable[[Rows], NDArray[np.float32]]  # rows of users -> (n, dim)


@runtime_checkable
class MayHaveProducts(Protocol):
    """A scorer that can tell whether its scores are products of vectors."""

    def __call__(self, users: Rows) -> NDArray[np.float32]: ...

    def products(self) -> Products | None: ...


class Ranked(NamedTuple):
    """Best first; ties go to the lower item row. Where a user has fewer candidates than k, the row
    ends in item -1 with score -inf."""

    items: Rows  # (n, k)
    scores: NDArray[np.float32]  # (n, k)


def length_of_list(k: int, n: int) -> int:
    """The length of a list of k out of n: k, or n where there are fewer; k < 1 is refused."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ConfigError(f"k = {k!r}: must be a whole number of at least 1")
    return min(int(k), n)


def top_k(
    scorer: Callable[[Rows], NDArray[np.float32]],
    users: Rows,
    k: int,
    *,
    n_items: int,
    seen: Interactions | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Ranked:
    """Each user's k best items that they have not `seen`. O(users * k) memory plus one tile."""
    parts = list(ranked_tiles(scorer, users, k, n_items=n_items, seen=seen, progress=progress))
    if not parts:
        return Ranked(np.empty((0, k), np.int32), np.empty((0, k), np.float32))
    items, scores = zip(*parts, strict=True)
    return Ranked(np.concatenate(items), np.concatenate(scores))


def tile_bytes(n_items: int) -> int:
    """The size of one tile of scores in bytes: at least 16 users, however many items there are."""
    return max(16, TILE_BYTES // (4 * n_items)) * 4 * n_items


def ranked_tiles(
    scorer: Callable[[Rows], NDArray[np.float32]],
    users: Rows,
    k: int,
    *,
    n_items: int,
    seen: Interactions | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Ranked]:
    """The same, a tile of users at a time."""
    if len(users) >= MANY and isinstance(scorer, MayHaveProducts):
        products = scorer.products()
        if products is not None and products.items.shape[1] <= WIDEST:
            yield from ranked_by_products(products, users, k, seen=seen, progress=progress)
            return
    tile = tile_bytes(n_items) // (4 * n_items)
    for start in range(0, len(users), tile):
        rows = users[start : start + tile]
        yield rank(scorer(rows), k, rows, seen)
        progress(start + len(rows))


def ranked_by_products(
    products: Products,
    users: Rows,
    k: int,
    *,
    seen: Interactions | None = None,
    only: Rows | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Ranked]:
    """The same without a table of scores: to write it and to read it again takes longer than to
    compute them. Lists have items of the rows `only`, or of all."""
    from ltocf.ranking.packed import PackedItems

    items = PackedItems.of(products.items, only)
    for start in range(0, len(users), CHUNK):
        rows = users[start : start + CHUNK]
        yield Ranked(*items.best(products.of_users(rows), k, *_left_out(seen, rows)))
        progress(start + len(rows))


def rank(scores: NDArray[np.float32], k: int, users: Rows, seen: Interactions | None) -> Ranked:
    """Top k of each row of `scores` (len(users), n_items), which is overwritten where seen."""
    indptr, items, rows = _left_out(seen, users)
    out = Ranked(
        np.full((len(users), k), -1, np.int32), np.full((len(users), k), -np.inf, np.float32)
    )
    dense = np.ascontiguousarray(scores, np.float32)
    if dense.size <= FEW and "numba" not in sys.modules:
        _rank_by_sorting(dense, indptr, items, rows, out)
        return out
    from ltocf.ranking.kernels import rank_rows

    chunk = len(dense) if dense.size <= FEW else max(1, FEW // dense.shape[1])
    arrays = dense, indptr, items, rows, out.items, out.scores
    share_out(lambda first, last: rank_rows(first, last, *arrays), len(dense), chunk)
    return out


def _left_out(seen: Interactions | None, users: Rows) -> tuple[NDArray[np.int64], Rows, Rows]:
    """indptr, items, rows: what is left out for place b begins at indptr[rows[b]] of the items."""
    if seen is not None:
        return seen.indptr, seen.items, users
    rows = np.arange(len(users), dtype=np.int32)
    return np.zeros(len(users) + 1, np.int64), np.empty(0, np.int32), rows


def _rank_by_sorting(
    scores: NDArray[np.float32], indptr: NDArray[np.int64], seen: Rows, rows: Rows, out: Ranked
) -> None:
    """The same without compiled code, which takes longer to load than a few lists take to sort."""
    for b, row in enumerate(scores):
        row[seen[indptr[rows[b]] : indptr[rows[b] + 1]]] = -np.inf
        k = min(out.items.shape[1], len(row))
        pool = np.flatnonzero(row >= reached_by_best(row, k))
        pool = pool[row[pool] > -np.inf]
        best = pool[np.argsort(-row[pool], kind="stable")][:k]
        out.items[b, : len(best)], out.scores[b, : len(best)] = best, row[best]


def reached_by_best(row: NDArray[np.float32], k: int) -> np.float32:
    """A score that at least k items of the row reach, and few others: the k-th best among the best
    scores of its parts. Finding the k-th best of all scores would take several times as long."""
    parts = len(row) // PART
    if parts >= k:
        # Parts are interleaved (each has every n-th score), so that one vectorised pass covers all.
        row = row[: parts * PART].reshape(PART, parts).max(axis=0)
    bound: np.float32 = np.partition(row, len(row) - k)[len(row) - k]
    return bound
