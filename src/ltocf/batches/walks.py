"""Batches whose positives are the items of random walks: his own, then ever further ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray

from ltocf.batches.draws import uniform
from ltocf.batches.triples import Batch, TripleBatches


class WalkBatches:
    """`triples` with walks for positives: (batch, orders), the triple's own item first, then one
    of somebody who has it, and so on. A step goes to a uniformly drawn neighbour.

    Row r's neighbours are `neighbours[indptr[r]:indptr[r + 1]]`, users' rows before items'."""

    def __init__(
        self,
        triples: TripleBatches,
        orders: int,
        indptr: NDArray[np.int64],
        neighbours: NDArray[np.int32],
    ) -> None:
        self.triples, self.orders = triples, orders
        self.indptr, self.neighbours = indptr, neighbours

    def __len__(self) -> int:
        return len(self.triples)

    def __iter__(self) -> Iterator[Batch]:
        start, n_users = 0, self.triples.interactions.n_users
        for users, positives, negatives in self.triples:
            walks = np.empty((len(users), self.orders), np.int64)
            walks[:, 0] = positives.numpy()
            _walk(self.indptr, self.neighbours, n_users, start, self.triples.key, walks)
            yield Batch(users, torch.from_numpy(walks), negatives)
            start += len(users)


@njit(cache=True, parallel=True)
def _walk(indptr: Any, neighbours: Any, n_users: Any, start: Any, key: Any, walks: Any) -> None:
    """Continue each row of `walks` from its first item, item -> user -> item."""
    for b in prange(len(walks)):
        node = n_users + walks[b, 0]
        for step in range(2 * (walks.shape[1] - 1)):
            degree = indptr[node + 1] - indptr[node]
            # Draws -2 and -3 choose the pair, 0 and up the negatives: below those is free.
            node = neighbours[indptr[node] + uniform(key, start + b, -4 - step, degree)]
            if step % 2 == 1:
                walks[b, step // 2 + 1] = node - n_users
