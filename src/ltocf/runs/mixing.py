"""Weights of a blend, fitted on held-out pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltocf.data.interactions import Interactions
from ltocf.models.blend import standardise
from ltocf.models.scorer import Scorer

K = 20
FIRST_WEIGHTS = (0.15, 0.3, 0.5, 0.75, 1.0, 1.5)
FINER = (0.8, 1.25)
WORTH = 1.002  # a further part must gain this factor: each costs time wherever the blend is used
MOST_BYTES = 800_000_000  # of all tables of scores together


class Mix(NamedTuple):
    parts: list[int]  # which of the scorers, the weightiest first
    weights: list[float]


def fit_mix(
    scorers: Sequence[Scorer], held_out: Interactions, seen: Interactions, most: int = 3
) -> Mix:
    """Up to `most` of the scorers and their weights by which `held_out` is recalled best: from the
    best one on, the part and the weight that gain most, then each weight a little up and down."""
    tables, wanted = _tables(scorers, held_out, seen)
    alone = [_recall(table, wanted) for table in tables]
    parts, weights = [int(np.argmax(alone))], [1.0]
    total, best = tables[parts[0]].clone(), max(alone)
    while len(parts) < min(most, len(tables)):
        tried = [
            (_recall(total + weight * tables[part], wanted), part, weight)
            for part in range(len(tables))
            if part not in parts
            for weight in FIRST_WEIGHTS
        ]
        recall, part, weight = max(tried)
        if recall < best * WORTH:
            break
        best, total = recall, total + weight * tables[part]
        parts, weights = [*parts, part], [*weights, weight]
    for index in range(1, len(parts)):
        for factor in FINER:
            changed = weights[index] * factor
            moved = total + (changed - weights[index]) * tables[parts[index]]
            if (recall := _recall(moved, wanted)) > best:
                best, total, weights[index] = recall, moved, changed
    return Mix(parts, [round(weight, 4) for weight in weights])


def _tables(
    scorers: Sequence[Scorer], held_out: Interactions, seen: Interactions
) -> tuple[list[Tensor], Tensor]:
    """Standardised scores of some users by each scorer, what they have set to lose, and whether
    each item is held out. (users, n_items)"""
    most = MOST_BYTES // (4 * held_out.n_items * (len(scorers) + 2))
    users = np.flatnonzero(held_out.user_degrees)[: max(most, 50)].astype(np.int32)
    owned, wanted = (torch.zeros(len(users), held_out.n_items, dtype=torch.bool) for _ in range(2))
    for row, user in enumerate(users):
        owned[row, torch.from_numpy(seen.items_of(user)).long()] = True
        wanted[row, torch.from_numpy(held_out.items_of(user)).long()] = True
    tables = [
        standardise(scorer(users).float().cpu()).masked_fill_(owned, -1e6) for scorer in scorers
    ]
    return tables, wanted


def _recall(scores: Tensor, wanted: Tensor) -> float:
    top = scores.topk(min(K, scores.shape[1]), dim=1).indices
    hits = wanted.gather(1, top).sum(1)
    return float((hits / wanted.sum(1)).double().mean())
