"""Interactions -> batches of (user, item he has, items he has not), drawn by compiled code.

Every draw is a hash of (seed, epoch, position, which draw), not the next number of a stream: the
same for any number of threads, and an epoch can be drawn again without replaying those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray
from torch import Tensor

from ltocf.batches.draws import uniform
from ltocf.data.interactions import Interactions

DrawBy = Literal["pairs", "users"]


class Batch(NamedTuple):
    users: Tensor  # (batch,) int64
    positives: Tensor  # (batch,) int64; of walks, (batch, orders)
    negatives: Tensor  # (batch, n) int64


class TripleBatches:
    """One epoch. By "pairs" it visits every pair once, in random order; by "users" it draws as many
    pairs as there are, a user uniformly and then one of their items (LightGCN's sampling)."""

    def __init__(
        self,
        interactions: Interactions,
        *,
        batch_size: int,
        negatives: int,
        seed: int,
        epoch: int,
        draw_by: DrawBy = "pairs",
    ) -> None:
        self.interactions, self.negatives, self.batch_size = interactions, negatives, batch_size
        self.key = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)[0]
        self.draw_by = draw_by

    def __len__(self) -> int:
        return -(-len(self.interactions) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        pairs = self._pairs()
        for start in range(0, len(pairs), self.batch_size):
            yield self._batch(pairs[start : start + self.batch_size], start)

    def _pairs(self) -> NDArray[np.int64]:
        """The position in `interactions` of each pair of the epoch, in order."""
        if self.draw_by == "pairs":
            return np.random.default_rng(self.key).permutation(len(self.interactions))
        active = np.flatnonzero(self.interactions.user_degrees)
        pairs: NDArray[np.int64] = _draw_user_then_item(
            self.interactions.indptr, active, len(self.interactions), self.key
        )
        return pairs

    def _batch(self, pairs: NDArray[np.int64], start: int) -> Batch:
        data, n = self.interactions, len(pairs)
        users, positives = np.empty(n, np.int64), np.empty(n, np.int64)
        negatives = np.empty((n, self.negatives), np.int64)
        _draw(
            data.users, data.items, data.indptr, data.n_items, pairs, start, self.key,
            users, positives, negatives,
        )  # fmt: skip
        return Batch(*map(torch.from_numpy, (users, positives, negatives)))


@njit(cache=True, parallel=True)
def _draw_user_then_item(indptr: Any, active: Any, n: Any, key: Any) -> Any:
    pairs = np.empty(n, np.int64)
    for i in prange(n):
        user = active[uniform(key, i, -3, len(active))]
        degree = indptr[user + 1] - indptr[user]
        pairs[i] = indptr[user] + uniform(key, i, -2, degree)
    return pairs


@njit(cache=True, parallel=True)
def _draw(
    users: Any, items: Any, indptr: Any, n_items: Any, pairs: Any, start: Any, key: Any,
    out_users: Any, out_positives: Any, out: Any,
) -> None:  # fmt: skip
    """The users and items of the pairs, and into `out` (batch, n) items drawn uniformly from those
    that each user has not seen."""
    for b in prange(len(pairs)):
        user = users[pairs[b]]
        out_users[b], out_positives[b] = user, items[pairs[b]]
        first, last = indptr[user], indptr[user + 1]
        unseen = n_items - (last - first)
        for j in range(out.shape[1]):
            if unseen == 0:  # he has everything: any item, so that his pairs still count
                out[b, j] = uniform(key, start + b, j, n_items)
                continue
            rank = uniform(key, start + b, j, unseen)
            # The rank-th unseen item directly, with no rejection: before his m-th item (ascending)
            # there are items[m] - m unseen ones, so skip the items with items[m] - m <= rank.
            low, high = first, last
            while low < high:
                middle = (low + high) // 2
                if items[middle] - (middle - first) <= rank:
                    low = middle + 1
                else:
                    high = middle
            out[b, j] = rank + (low - first)
