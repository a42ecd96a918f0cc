"""Item kNN, RP3beta and sparse EASE when asked: a sparse matrix of weights from item to item."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Rows
from ltocf.scorers.of_histories import LinearScorer, rows_times
from ltocf.scorers.scorer import Scores


class ItemItemScorer(LinearScorer):
    """Scores are r W; arrays `values`, `indices` and `indptr` of W by rows."""

    kind = "item-item weights"

    @cached_property
    def matrix(self) -> csr_array:
        parts = tuple(self.arrays[name] for name in ("values", "indices", "indptr"))
        return csr_array(parts, shape=(self.train.n_items, self.train.n_items))

    def score_histories(self, histories: csr_array) -> Scores:
        return rows_times(histories, self.matrix)

    def entries(self, rows: Rows, columns: Rows) -> NDArray[np.floating[Any]]:
        found: NDArray[np.float32] = self.matrix[rows][:, columns].toarray()
        return found

    def row_sums(self, rows: Rows) -> NDArray[np.floating[Any]]:
        return np.asarray(self.matrix[rows].sum(axis=1), np.float64).ravel()
