"""Batches whose positives are the items of random walks: the user's own, then ever further ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from ltocf.batches.ahead import Batch, Batches
from ltocf.batches.triples import TripleBatches
from ltocf.draws import uniform


class WalkBatches(Batches):
    """`triples` with walks for positives: (n, orders), the triple's own item first, then one
    of somebody who has it, and so on. A step goes to a uniformly drawn neighbour.

    Row r's neighbours are `neighbours[indptr[r]:indptr[r + 1]]`, users' rows before items'."""

    def __init__(
        self,
        triples: TripleBatches,
        orders: int,
        indptr: NDArray[np.int64],
        neighbours: NDArray[np.int32],
    ) -> None:
        super().__init__(triples.n, triples.batch_size, self.walks)
        self.triples, self.orders = triples, orders
        self.indptr, self.neighbours = indptr, neighbours

    def walks(self, start: int, stop: int) -> Batch:
        drawn = self.triples.triples(start, stop)
        walks = np.empty((stop - start, self.orders), np.int64)
        walks[:, 0] = drawn.positives.numpy()
        n_users, key = self.triples.interactions.n_users, self.triples.key
        _walk(self.indptr, self.neighbours, n_users, start, key, walks)
        return Batch(drawn.users, torch.from_numpy(walks), drawn.negatives)


@njit(cache=True, nogil=True)
def _walk(indptr: Any, neighbours: Any, n_users: Any, start: Any, key: Any, walks: Any) -> None:
    """Continue each row of `walks` from its first item, item -> user -> item."""
    for b in range(len(walks)):
        node = n_users + walks[b, 0]
        for step in range(2 * (walks.shape[1] - 1)):
            degree = indptr[node + 1] - indptr[node]
            # Draws -2 and -3 choose the pair, 0 and up the negatives: from -64 down is free.
            node = neighbours[indptr[node] + uniform(key, start + b, -64 - step, degree)]
            if step % 2 == 1:
                walks[b, step // 2 + 1] = node - n_users
