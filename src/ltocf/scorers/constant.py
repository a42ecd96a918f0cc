"""Popularity and random when asked: the floors under every model."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ltocf.data.interactions import Rows
from ltocf.scorers.of_histories import HistoryScorer
from ltocf.scorers.scorer import NOBODY, Formula, Scores, Terms

ODD = np.int64(0x2545F4914F6CDD1D)  # a multiplier that mixes the bits of a 64-bit number


class PopularityScorer(HistoryScorer):
    """Gives everybody the same scores, the array `scores`."""

    kind = "popularity"

    def score_histories(self, histories: csr_array) -> Scores:
        return np.tile(self.arrays["scores"], (histories.shape[0], 1))

    def explain(self, items: Rows, history: csr_array, user: int = NOBODY) -> Terms:
        found = self.arrays["scores"][items].astype(np.float64)
        return Terms(np.zeros(len(items)), np.zeros((history.nnz, len(items))), found)

    def explain_mean(self, history: csr_array, user: int = NOBODY) -> Terms:
        mean = self.arrays["scores"].mean(dtype=np.float64, keepdims=True)
        return Terms(np.zeros(1), np.zeros((history.nnz, 1)), mean)

    def write(self, formula: Formula) -> str | None:
        return formula.constant(self.arrays["scores"])


class RandomScorer(HistoryScorer):
    """Pseudo-random scores that never change: hashes of history, item and the array `lots`."""

    kind = "random"

    @property
    def knows_untouched(self) -> bool:
        return True  # to chance they are like any other

    def score_histories(self, histories: csr_array) -> Scores:
        lots = self.arrays["lots"]
        of_rows = np.asarray(histories.astype(np.int64) @ lots)
        mixed = (of_rows[:, None] ^ lots) * ODD
        mixed = (mixed ^ (mixed >> 29)) * ODD
        scores: Scores = (mixed >> 40).astype(np.float32)
        return scores
