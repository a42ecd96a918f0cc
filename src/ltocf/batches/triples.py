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

DrawBy = Literal["pairs", "users"]
AT_ONCE = 256  # positions whose pairs are looked up together
FEW = 4  # draws for a position: so few do not keep the memory busy, those of many positions do


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
        self.key = epoch_key(seed, epoch)
        users = draw_by == "users"
        self.active = np.flatnonzero(interactions.user_degrees if users else np.empty(0))

    def triples(self, start: int, stop: int) -> Batch:
        """The triples of these positions of the epoch."""
        data, n = self.interactions, stop - start
        users, positives = np.empty(n, np.int64), np.empty(n, np.int64)
        negatives = np.empty((n, self.negatives), np.int64)
        _draw(
            data.users, data.items, data.indptr, data.n_items, self.active, start, self.key,
            users, positives, negatives,
        )  # fmt: skip
        return Batch(*map(torch.from_numpy, (users, positives, negatives)))


def epoch_key(seed: int, epoch: int) -> np.uint64:
    """The key of all draws of an epoch."""
    key: np.uint64 = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)[0]
    return key


@njit(cache=True, nogil=True)
def _draw(
    users: Any, items: Any, indptr: Any, n_items: Any, active: Any, start: Any, key: Any,
    out_users: Any, out_positives: Any, out: Any,
) -> None:  # fmt: skip
    """The users and items of consecutive positions, and into `out` (rows, n) items drawn uniformly
    from those that each user has not seen."""
    n = out.shape[1]
    pairs = np.empty(AT_ONCE, np.int64)
    ranks, skipped = np.empty(n, np.int32), np.empty(n, np.int32)
    begins, left = np.empty(AT_ONCE, np.int64), np.empty(AT_ONCE, np.int32)
    ranks_of, skipped_of = np.empty(AT_ONCE, np.int32), np.empty(AT_ONCE, np.int32)
    for first in range(0, len(out_users), AT_ONCE):
        # Some positions at a time, one step for all of them: what the next step reads is then on
        # its way from memory for many of them at once.
        last = min(first + AT_ONCE, len(out_users))
        _choose_pairs(indptr, len(users), active, start + first, key, pairs[: last - first])
        for b in range(first, last):
            out_users[b], out_positives[b] = users[pairs[b - first]], items[pairs[b - first]]
        if n <= FEW:
            for draw in range(n):
                _draw_side_by_side(
                    items, indptr, n_items, key, start + first, out_users[first:last], draw,
                    begins, left, ranks_of, skipped_of, out[first:last, draw],
                )  # fmt: skip
            continue
        for b in range(first, last):
            begin, end = indptr[out_users[b]], indptr[out_users[b] + 1]
            draw_unseen(items, begin, end, n_items, key, start + b, ranks, skipped, out[b])


@njit(cache=True, nogil=True, inline="always")
def draw_unseen(
    items: Any, begin: Any, end: Any, n_items: Any, key: Any, position: Any, ranks: Any,
    skipped: Any, out: Any,
) -> None:  # fmt: skip
    """Into `out`, items that a user who has items[begin:end] has not, for this position of an
    epoch. `ranks` and `skipped` are room to work in."""
    unseen = n_items - (end - begin)
    if unseen == 0:  # they have everything: any item, so that their pairs still count
        unseen, end = n_items, begin
    for j in range(len(out)):
        ranks[j] = uniform(key, position, j, unseen)
    _skip_own(items, begin, end, ranks, skipped)
    for j in range(len(out)):
        out[j] = ranks[j] + skipped[j]


@njit(cache=True, nogil=True)
def _draw_side_by_side(
    items: Any, indptr: Any, n_items: Any, key: Any, start: Any, users: Any, draw: Any, begin: Any,
    left: Any, ranks: Any, skipped: Any, out: Any,
) -> None:  # fmt: skip
    """`draw_unseen` for one draw at some consecutive positions, each halving for all of them before
    the next: what they read is then on its way from memory for many of them at once."""
    n, longest = len(users), 0
    for b in range(n):
        begin[b] = indptr[users[b]]
        degree = np.int32(indptr[users[b] + 1] - begin[b])
        left[b] = 0 if degree == n_items else degree  # they have everything: nothing is skipped
        longest = max(longest, left[b])
        ranks[b] = uniform(key, start + b, draw, n_items - left[b])
        skipped[b] = 0
    while longest > 0:
        for b in range(n):
            half = (left[b] + 1) >> 1  # of those for whom none is left, 0: nothing changes
            m = max(skipped[b] + half - 1, 0)
            skipped[b] += half if items[begin[b] + m] - m <= ranks[b] else 0
            left[b] -= half
        longest >>= 1
    for b in range(n):
        out[b] = ranks[b] + skipped[b]


@njit(cache=True, nogil=True)
def _choose_pairs(indptr: Any, n_pairs: Any, active: Any, start: Any, key: Any, pairs: Any) -> None:
    """Which pairs stand at consecutive positions of the epoch."""
    if len(active):
        for b in range(len(pairs)):
            user = active[uniform(key, start + b, -3, len(active))]
            degree = indptr[user + 1] - indptr[user]
            pairs[b] = indptr[user] + uniform(key, start + b, -2, degree)
    else:
        half = half_bits(n_pairs)
        for b in range(len(pairs)):
            pairs[b] = shuffled(key, start + b, n_pairs, half)


@njit(cache=True, nogil=True, inline="always")
def _skip_own(items: Any, begin: Any, end: Any, ranks: Any, skipped: Any) -> None:
    """How many of the user's items, items[begin:end], come before the unseen item of each rank.

    Before their m-th item (ascending) there are items[begin + m] - m unseen ones, so those are
    skipped of which that is at most the rank. They are counted by halves, each for all ranks before
    the next: no step depends on what the processor would have to guess."""
    for j in range(len(ranks)):
        skipped[j] = 0
    left = end - begin
    while left > 0:
        half = (left + 1) // 2
        for j in range(len(ranks)):
            m = skipped[j] + half - 1
            # Of `left` that may have to be skipped, either this half has to, or no more than it.
            skipped[j] += half if items[begin + m] - m <= ranks[j] else 0
        left -= half
