"""Interactions -> batches of (user, item they have, items they have not), drawn by compiled code.

Every draw is a hash of (seed, epoch, position, which draw), not the next number of a stream: the
same for any number of threads or processes, and any part of an epoch can be drawn by itself.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numba import njit

from ltocf.batches.ahead import Batch, Batches
from ltocf.data.interactions import Interactions
from ltocf.draws import half_bits, shuffled, uniform
from ltocf.threads import share_out

DrawBy = Literal["pairs", "users"]
RANGE = 1 << 17  # numbers drawn by one thread at a time; it takes milliseconds
MANY, FEW = 16, 192  # negatives of a pair, items of a user, for which one by one is faster


class TripleBatches(Batches):
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
        super().__init__(len(interactions), batch_size, self.triples)
        self.interactions, self.negatives = interactions, negatives
        self.key = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)[0]
        users = draw_by == "users"
        self.active = np.flatnonzero(interactions.user_degrees if users else np.empty(0))

    def triples(self, start: int, stop: int) -> Batch:
        """The triples of these positions of the epoch."""
        data, n = self.interactions, stop - start
        users, positives = np.empty(n, np.int64), np.empty(n, np.int64)
        negatives = np.empty((n, self.negatives), np.int64)

        def run(first: int, last: int) -> None:
            _draw(
                data.users, data.items, data.indptr, data.n_items, self.active, start + first,
                self.key, users[first:last], positives[first:last], negatives[first:last],
            )  # fmt: skip

        share_out(run, n, max(1, RANGE // (self.negatives + 1)))
        return Batch(*map(torch.from_numpy, (users, positives, negatives)))


@njit(cache=True, nogil=True)
def _draw(
    users: Any, items: Any, indptr: Any, n_items: Any, active: Any, start: Any, key: Any,
    out_users: Any, out_positives: Any, out: Any,
) -> None:  # fmt: skip
    """The users and items of consecutive positions, and into `out` (rows, n) items drawn uniformly
    from those that each user has not seen."""
    half, ranks = half_bits(len(users)), np.empty(out.shape[1], np.int32)
    for b in range(len(out_users)):
        if len(active):
            user = active[uniform(key, start + b, -3, len(active))]
            degree = indptr[user + 1] - indptr[user]
            pair = indptr[user] + uniform(key, start + b, -2, degree)
        else:
            pair = shuffled(key, start + b, len(users), half)
            user = np.int64(users[pair])
        out_users[b], out_positives[b] = user, items[pair]
        own = items[indptr[user] : indptr[user + 1]]
        unseen = n_items - len(own)
        if unseen == 0:  # they have everything: any item, so that their pairs still count
            own, unseen = own[:0], n_items
        for j in range(len(ranks)):
            ranks[j] = uniform(key, start + b, j, unseen)
        # The rank-th unseen item directly, with no rejection: before their m-th item (ascending)
        # there are items[m] - m unseen ones; skip those with items[m] - m <= rank.
        if len(ranks) >= MANY and len(own) <= FEW:
            _skip_one_by_one(own, ranks, out[b])
        else:
            _skip_by_halves(own, ranks, out[b])


@njit(cache=True, nogil=True)
def _skip_one_by_one(own: Any, ranks: Any, out: Any) -> None:
    """Each of the user's items for all ranks at once: more steps than by halves, but the processor
    takes sixteen of them in one."""
    skipped = np.zeros(len(ranks), np.int32)
    for m in range(len(own)):
        unseen_before = np.int32(own[m] - m)
        for j in range(len(ranks)):
            skipped[j] += np.int32(1) if unseen_before <= ranks[j] else np.int32(0)
    for j in range(len(ranks)):
        out[j] = ranks[j] + skipped[j]


@njit(cache=True, nogil=True)
def _skip_by_halves(own: Any, ranks: Any, out: Any) -> None:
    for j in range(len(ranks)):
        low, high = 0, len(own)
        while low < high:
            middle = (low + high) // 2
            if own[middle] - middle <= ranks[j]:
                low = middle + 1
            else:
                high = middle
        out[j] = ranks[j] + low
