"""Which items, and which users, are alike to a model."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.data.interactions import Interactions, Rows
from ltocf.models.base import Scorer
from ltocf.models.embedding import DotScorer
from ltocf.models.network import PairScorer
from ltocf.ranking.top_k import Ranked, rank
from ltocf.recommend.new_users import history_matrix


def similar_items(scorer: Scorer, items: Rows, k: int, *, n_items: int) -> Ranked:
    """By the cosine of their vectors; where a model has none, by the scores that it gives
    to somebody who has that item alone."""
    if isinstance(scorer, DotScorer | PairScorer):
        return _nearest(_cosines(scorer.items, items), items, k)
    return _nearest(
        scorer.from_history(history_matrix(np.split(items, len(items)), n_items)), items, k
    )


def similar_users(scorer: Scorer, users: Rows, k: int, *, seen: Interactions) -> Ranked:
    """By the cosine of their vectors; where a model has none, of their 0/1 histories."""
    if isinstance(scorer, DotScorer | PairScorer):
        return _nearest(_cosines(scorer.users, users), users, k)
    lengths = np.sqrt(np.maximum(seen.user_degrees, 1))
    values = (1 / lengths)[seen.users].astype(np.float32)
    unit = csr_array((values, seen.items, seen.indptr), shape=(seen.n_users, seen.n_items))
    return _nearest(torch.from_numpy((unit[users] @ unit.T).toarray()), users, k)


def _cosines(vectors: Tensor, rows: Rows) -> Tensor:
    lengths = torch.linalg.vector_norm(vectors, dim=1).clamp(min=1e-12)
    chosen = torch.from_numpy(rows).long()
    cosines: Tensor = vectors[chosen] @ vectors.T / lengths[chosen][:, None] / lengths
    return cosines


def _nearest(scores: Tensor, themselves: Rows, k: int) -> Ranked:
    scores[torch.arange(len(themselves)), torch.from_numpy(themselves).long()] = -torch.inf
    return rank(scores, k, themselves, seen=None)
