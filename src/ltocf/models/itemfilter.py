"""What GF-CF, BSPM and ChebyCF have in common: a filter of the item graph plus a low rank."""

from __future__ import annotations

import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.filters.items import filter_items
from ltocf.models.history import HistoryModel


class ItemFilterModel(HistoryModel):
    """Scores of a row r are `(r * before) p(P) * after + r left right^T`.

    P = N^T N is never formed: p(P) is a Chebyshev filter of the graph, and left and right are
    (n_items, rank). Memory: those two, and the scores of the rows asked for, twice.
    """

    coefficients: Tensor  # of p(x^2) as a Chebyshev series on A
    before: Tensor  # (n_items,)
    after: Tensor  # (n_items,)
    left: Tensor
    right: Tensor

    def score_histories(self, histories: csr_array) -> Tensor:
        signal = torch.from_numpy(histories.toarray()).float() * self.before
        filtered = filter_items(self.graph, signal.T, self.coefficients)
        scores = filtered.T * self.after
        weights = torch.from_numpy((histories @ self.left.numpy()).astype("float32"))
        return scores.addmm_(weights, self.right.T)
