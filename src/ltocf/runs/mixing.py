"""Weights of a blend, fitted on held-out pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltocf.data.interactions import Interactions, Rows
from ltocf.models.blend import standardise
from ltocf.models.scorer import Scorer
from ltocf.ranking.metrics import Metrics, list_metrics

DEPTH = 50  # of the lists whose NDCG tells weights apart: shorter ones hear of fewer pairs
POOL = 100  # best items of each scorer for a user: what a blend ranks first is among them
# A scorer whose few best items stand out far, such as sparse EASE, wants a small one.
FIRST_WEIGHTS = tuple(0.03 * 2**step for step in range(7))
FINER = (1.5, 1.2)
WORTH = 1.002  # a further part must gain this factor: each costs time wherever the blend is used
LAST = -1e6  # the score of what must not be ranked
TILE = 256  # users whose scores of all items are in memory at a time


Mix = dict[int, float]  # the weights of some of the scorers, the best one first


class Pool(NamedTuple):
    """What some users are to be ranked by: the items that any scorer has among its best."""

    users: Rows
    scores: list[Tensor]  # of each scorer, standardised over all items. (users, pool)
    wanted: Tensor  # whether the item is held out. (users, pool)
    n_wanted: Tensor  # of all items. (users,)

    def of(self, pairs: Interactions) -> Pool:
        """Of the users alone who have any of the pairs."""
        rows = torch.from_numpy(pairs.user_degrees[self.users] > 0)
        scores = [scores[rows] for scores in self.scores]
        return Pool(self.users[rows.numpy()], scores, self.wanted[rows], self.n_wanted[rows])

    def metrics(self, scores: Tensor, k: int = 20) -> Metrics:
        top = scores.topk(min(k, scores.shape[1]), dim=1).indices
        lists = list_metrics(self.wanted.gather(1, top).numpy(), self.n_wanted.numpy(), (k,))
        return {name: float(values.mean()) for name, values in lists.items()}

    def ndcg(self, scores: Tensor) -> float:
        return self.metrics(scores, DEPTH)[f"ndcg@{DEPTH}"]

    def total(self, weights: Mix) -> Tensor:
        return torch.stack([weight * self.scores[part] for part, weight in weights.items()]).sum(0)


class _Tried(NamedTuple):
    ndcg: float
    weights: Mix


def fit_mix(pool: Pool, most: int = 3) -> Mix:
    """Up to `most` of the scorers and their weights by which held-out pairs are ranked best: from
    the best one on, the part that gains most. Whenever one has joined, each of those before it but
    the first makes way if another gains more beside the rest."""
    alone = [pool.ndcg(scores) for scores in pool.scores]
    mix = _Tried(max(alone), {int(np.argmax(alone)): 1.0})
    while len(mix.weights) < min(most, len(pool.scores)):
        larger = _joined(pool, mix.weights)
        if larger.ndcg < mix.ndcg * WORTH:
            break
        mix = larger
        for part in list(mix.weights)[1:-1]:
            rest = {other: weight for other, weight in mix.weights.items() if other != part}
            mix = max(mix, _joined(pool, rest), key=lambda tried: tried.ndcg)
    return {part: round(weight, 4) for part, weight in mix.weights.items()}


def _joined(pool: Pool, weights: Mix) -> _Tried:
    """With one part more: the one that gains most with any of FIRST_WEIGHTS, and then each weight
    but the first moved up or down as long as that gains."""
    total = pool.total(weights)
    best = max(
        (
            _Tried(pool.ndcg(total + weight * pool.scores[part]), weights | {part: weight})
            for part in range(len(pool.scores))
            if part not in weights
            for weight in FIRST_WEIGHTS
        ),
        key=lambda tried: tried.ndcg,
    )
    for factor in FINER:
        before = None
        while best is not before:
            before = best
            for part in list(best.weights)[1:]:
                for moved in (best.weights[part] * factor, best.weights[part] / factor):
                    weights = best.weights | {part: moved}
                    tried = _Tried(pool.ndcg(pool.total(weights)), weights)
                    best = max(best, tried, key=lambda tried: tried.ndcg)
    return best


def pooled(scorers: Sequence[Scorer], held_out: Interactions, seen: Interactions) -> Pool:
    users = np.flatnonzero(held_out.user_degrees).astype(np.int32)
    tiles = [
        _tile(scorers, users[start : start + TILE], held_out, seen)
        for start in range(0, len(users), TILE)
    ]
    scores = [torch.cat([tile.scores[part] for tile in tiles]) for part in range(len(scorers))]
    wanted, n_wanted = (torch.cat(column) for column in list(zip(*tiles, strict=True))[2:])
    return Pool(users, scores, wanted, n_wanted)


def _tile(
    scorers: Sequence[Scorer], users: Rows, held_out: Interactions, seen: Interactions
) -> Pool:
    owned, wanted = (torch.zeros(len(users), held_out.n_items, dtype=torch.bool) for _ in range(2))
    for row, user in enumerate(users):
        owned[row, torch.from_numpy(seen.items_of(user)).long()] = True
        wanted[row, torch.from_numpy(held_out.items_of(user)).long()] = True
    tables = [
        standardise(scorer(users).float().cpu()).masked_fill_(owned, LAST) for scorer in scorers
    ]
    best = [table.topk(min(POOL, table.shape[1]), dim=1).indices for table in tables]
    pool = torch.cat(best, 1).sort(1).values
    again = torch.zeros_like(pool, dtype=torch.bool)
    again[:, 1:] = pool[:, 1:] == pool[:, :-1]
    scores = [table.gather(1, pool).masked_fill_(again, LAST) for table in tables]
    return Pool(users, scores, wanted.gather(1, pool) & ~again, wanted.sum(1))
