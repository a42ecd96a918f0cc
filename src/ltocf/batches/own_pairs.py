"""The triples of some users' pairs, at the places of an epoch that `TripleBatches` would give them:
for a process that has no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ltocf.batches.ahead import CHUNK
from ltocf.batches.triples import draw_unseen, epoch_key
from ltocf.draws import half_bits, unshuffled

Nodes = NDArray[np.integer[Any]]
Triples = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


class OwnPairs:
    """All pairs of some users, sorted by user and item; `places` are theirs among all `n_pairs`,
    sorted alike."""

    def __init__(
        self, users: Nodes, items: Nodes, places: Nodes, *, n_pairs: int, n_users: int, n_items: int
    ) -> None:
        self.users, self.items, self.places = users, items.astype(np.int32), places
        self.n_pairs, self.n_items = n_pairs, n_items
        degrees = np.bincount(users, minlength=n_users)
        self.indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)

    def epoch(self, *, batch_size: int, negatives: int, seed: int, epoch: int) -> Iterator[Batch]:
        """For each batch, how many pairs all processes have in it, and those here, in chunks: users
        (n,), items (n,) and negatives (n, negatives)."""
        key = epoch_key(seed, epoch)
        positions = np.empty(len(self.places), np.int64)
        _find_positions(key, self.places, self.n_pairs, positions)
        order = np.argsort(positions)
        positions = positions[order]
        for start in range(0, self.n_pairs, batch_size):
            stop = min(start + batch_size, self.n_pairs)
            first, last = np.searchsorted(positions, [start, stop])
            yield stop - start, self._chunks(key, order, positions, first, last, negatives)

    def _chunks(
        self, key: np.uint64, order: Nodes, positions: Nodes, first: int, last: int, negatives: int
    ) -> Iterator[Triples]:
        for start in range(first, last, CHUNK):
            some = slice(start, min(start + CHUNK, last))
            users, items = self.users[order[some]], self.items[order[some]]
            drawn = np.empty((len(users), negatives), np.int64)
            _draw(self.items, self.indptr, self.n_items, key, positions[some], users, drawn)
            yield users.astype(np.int64), items.astype(np.int64), drawn


Batch = tuple[int, Iterator[Triples]]


@njit(cache=True, nogil=True)
def _find_positions(key: Any, places: Any, n_pairs: Any, positions: Any) -> None:
    half = half_bits(n_pairs)
    for i in range(len(places)):
        positions[i] = unshuffled(key, places[i], n_pairs, half)


@njit(cache=True, nogil=True)
def _draw(
    items: Any, indptr: Any, n_items: Any, key: Any, positions: Any, users: Any, out: Any
) -> None:
    n = out.shape[1]
    ranks, skipped = np.empty(n, np.int32), np.empty(n, np.int32)
    for b in range(len(users)):
        begin, end = indptr[users[b]], indptr[users[b] + 1]
        draw_unseen(items, begin, end, n_items, key, positions[b], ranks, skipped, out[b])
