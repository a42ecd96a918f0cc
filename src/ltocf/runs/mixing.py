"""Weights of a blend, fitted on held-out pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltocf.data.interactions import Interactions, Rows
from ltocf.models.blend import standardise
from ltocf.models.scorer import Scorer
from ltocf.ranking.metrics import list_metrics
from ltocf.runs.records import merit

K = 20
POOL = 100  # best items of each scorer for a user: what a blend ranks first is among them
FIRST_WEIGHTS = (0.15, 0.3, 0.5, 0.75, 1.0, 1.5)
FINER, ROUNDS = (0.8, 1.25), 3
WORTH = 1.002  # a further part must gain this factor: each costs time wherever the blend is used
LAST = -1e6  # the score of what must not be ranked
TILE = 256  # users whose scores of all items are in memory at a time


class Mix(NamedTuple):
    parts: list[int]  # which of the scorers, the weightiest first
    weights: list[float]


class _Pool(NamedTuple):
    """What some users are to be ranked by: the items that any scorer has among its best."""

    scores: list[Tensor]  # of each scorer, standardised over all items. (users, pool)
    wanted: Tensor  # whether the item is held out. (users, pool)
    n_wanted: Tensor  # of all items. (users,)

    def merit(self, scores: Tensor) -> float:
        top = scores.topk(min(K, scores.shape[1]), dim=1).indices
        lists = list_metrics(self.wanted.gather(1, top).numpy(), self.n_wanted.numpy(), (K,))
        return merit({name: float(values.mean()) for name, values in lists.items()})


def fit_mix(
    scorers: Sequence[Scorer], held_out: Interactions, seen: Interactions, most: int = 3
) -> Mix:
    """Up to `most` of the scorers and their weights by which `held_out` is ranked best: from the
    best one on, the part and the weight that gain most, then each weight a little up and down."""
    pool = _pooled(scorers, held_out, seen)
    alone = [pool.merit(scores) for scores in pool.scores]
    parts, weights = [int(np.argmax(alone))], [1.0]
    total, best = pool.scores[parts[0]].clone(), max(alone)
    while len(parts) < min(most, len(scorers)):
        tried = [
            (pool.merit(total + weight * pool.scores[part]), part, weight)
            for part in range(len(scorers))
            if part not in parts
            for weight in FIRST_WEIGHTS
        ]
        gained, part, weight = max(tried)
        if gained < best * WORTH:
            break
        best, total = gained, total + weight * pool.scores[part]
        parts, weights = [*parts, part], [*weights, weight]
    for index, factor in product(list(range(1, len(parts))) * ROUNDS, FINER):
        changed = weights[index] * factor
        moved = total + (changed - weights[index]) * pool.scores[parts[index]]
        if (gained := pool.merit(moved)) > best:
            best, total, weights[index] = gained, moved, changed
    return Mix(parts, [round(weight, 4) for weight in weights])


def _pooled(scorers: Sequence[Scorer], held_out: Interactions, seen: Interactions) -> _Pool:
    users = np.flatnonzero(held_out.user_degrees).astype(np.int32)
    tiles = [
        _tile(scorers, users[start : start + TILE], held_out, seen)
        for start in range(0, len(users), TILE)
    ]
    scores = [torch.cat([tile.scores[part] for tile in tiles]) for part in range(len(scorers))]
    wanted, n_wanted = (torch.cat(column) for column in list(zip(*tiles, strict=True))[1:])
    return _Pool(scores, wanted, n_wanted)


def _tile(
    scorers: Sequence[Scorer], users: Rows, held_out: Interactions, seen: Interactions
) -> _Pool:
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
    return _Pool(scores, wanted.gather(1, pool) & ~again, wanted.sum(1))
