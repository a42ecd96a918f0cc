"""How high a user's scores must be to stand among their k largest, estimated from some items.

SL@K (`SLatK`) weighs each positive by where it stands to that. To know it exactly takes the scores
of all items; a few hundred of them and the user's own are enough for an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.config import Loss, SLatK
from ltocf.data.interactions import Interactions
from ltocf.models.base import Model, PairScorer

AT_ONCE = 1 << 16  # scores held at a time
DRAWS = 0x51A7  # a stream of its own: the sample must not repeat what a step draws
KEY = "thresholds"  # in the state of a training


class Thresholds:
    """Of a loss that weighs by them, and kept with the state of its training; of others, none."""

    def __init__(self, loss: Loss, seed: int) -> None:
        self.loss, self.seed = loss, seed
        self.values: Tensor | None = None  # (n_users,)

    def refresh_(self, model: Model, epoch: int, watch: Callable[[], None] = lambda: None) -> None:
        """Estimate them anew if it is time to; `watch` is called often, and may raise."""
        if not isinstance(self.loss, SLatK) or (epoch - 1) % self.loss.refresh_every:
            return
        pairs = model.graph.interactions
        # By the epoch, so that a resumed training draws what an uninterrupted one does.
        random = np.random.default_rng([self.seed, epoch, DRAWS])
        sample = random.choice(pairs.n_items, min(self.loss.sample, pairs.n_items), replace=False)
        model.eval()  # without dropout
        self.values = estimated(
            model.pair_scorer(), pairs, torch.from_numpy(np.sort(sample)), self.loss.k, watch
        )

    def beside(self, batch: ChunkedBatch) -> ChunkedBatch:
        """The batch, with the thresholds of its users."""
        if self.values is None:
            return batch
        return batch._replace(chunks=map(self._beside_chunk, batch.chunks))

    def _beside_chunk(self, chunk: Batch) -> Batch:
        assert self.values is not None
        return chunk._replace(thresholds=self.values[chunk.users])

    def state(self) -> dict[str, Tensor]:
        return {} if self.values is None else {KEY: self.values}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.values = state[KEY].clone() if KEY in state else None


@torch.no_grad()
def estimated(
    score: PairScorer,
    pairs: Interactions,
    sample: Tensor,
    k: int,
    watch: Callable[[], None] = lambda: None,
) -> Tensor:
    """Each user's k-th largest score. (n_users,)

    A user's own items count once each; the others of the sample stand for all that the user has
    not, in equal shares. The estimate is the score whose rank by that is nearest to k. If the
    sample has all items, it is exact."""
    place = torch.full((pairs.n_items,), -1)
    place[sample] = torch.arange(len(sample))
    found = []
    for start, stop in _ranges(pairs, len(sample)):
        users = torch.arange(start, stop)
        own = slice(int(pairs.indptr[start]), int(pairs.indptr[stop]))
        rows = torch.from_numpy(pairs.users[own]).long() - start
        items = torch.from_numpy(pairs.items[own]).long()
        others = score(users, sample.expand(len(users), -1).contiguous()).cpu()
        sampled = place[items] >= 0
        others[rows[sampled], place[items][sampled]] = -torch.inf  # they are among the own ones
        degrees = rows.bincount(minlength=len(users))
        left = len(sample) - rows[sampled].bincount(minlength=len(users))
        share = (pairs.n_items - degrees) / left.clamp(min=1)
        mine = _largest_of_each(score(users[rows], items[:, None]).cpu()[:, 0], rows, len(users), k)
        theirs = others.topk(min(k, len(sample))).values
        found.append(_nearest_to_rank(k, mine, theirs, share))
        watch()
    return torch.cat(found)


def _ranges(pairs: Interactions, sampled: int) -> Iterator[tuple[int, int]]:
    """Users that have about AT_ONCE scores together, or one user."""
    scores = np.cumsum(sampled + pairs.user_degrees.astype(np.int64))
    starts = np.flatnonzero(np.diff(scores // AT_ONCE, prepend=-1))
    yield from zip(starts.tolist(), [*starts[1:].tolist(), pairs.n_users], strict=True)


def _largest_of_each(scores: Tensor, rows: Tensor, n: int, k: int) -> Tensor:
    """The k largest scores of each of n rows, which are sorted; -inf where there are fewer."""
    order = torch.from_numpy(np.lexsort((-scores.numpy(), rows.numpy())))
    counts = rows.bincount(minlength=n)
    rank = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[rows]
    kept = rank < k
    largest = scores.new_full((n, min(k, int(counts.max()))), -torch.inf)
    largest[rows[kept], rank[kept]] = scores[order][kept]
    return largest


def _nearest_to_rank(k: int, mine: Tensor, theirs: Tensor, share: Tensor) -> Tensor:
    scores, order = torch.cat([mine, theirs], 1).sort(1, descending=True)
    shares = torch.cat([torch.ones_like(mine), share[:, None].to(theirs).expand_as(theirs)], 1)
    ranks = (shares.gather(1, order) * scores.isfinite()).double().cumsum(1)
    return scores.gather(1, (ranks - k).abs().argmin(1, keepdim=True))[:, 0]
