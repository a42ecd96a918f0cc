"""Which items, and which users, are alike to a model."""

from __future__ import annotations

import torch
from torch import Tensor

from ltocf.data.interactions import Rows
from ltocf.models.scorer import Scorer
from ltocf.ranking.top_k import Ranked, rank


def similar_items(scorer: Scorer, items: Rows, k: int) -> Ranked:
    return _nearest(scorer.similar_items(items), items, k)


def similar_users(scorer: Scorer, users: Rows, k: int) -> Ranked:
    return _nearest(scorer.similar_users(users), users, k)


def _nearest(scores: Tensor, themselves: Rows, k: int) -> Ranked:
    scores[torch.arange(len(themselves)), torch.from_numpy(themselves).long()] = -torch.inf
    return rank(scores, k, themselves, seen=None)
