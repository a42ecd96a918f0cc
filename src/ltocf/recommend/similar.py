"""Which items, and which users, are alike to a model."""

from __future__ import annotations

import numpy as np

from ltocf.data.interactions import Rows
from ltocf.ranking.top_k import Ranked, rank
from ltocf.scorers.scorer import Scorer, Scores


def similar_users(scorer: Scorer, users: Rows, k: int) -> Ranked:
    return rank(others(scorer.similar_users(users), users), k, users, seen=None)


def others(scores: Scores, themselves: Rows) -> Scores:
    """Scores in which nothing is similar to itself; in place."""
    scores[np.arange(len(themselves)), themselves] = -np.inf
    return scores
