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
    (n_items, rank); before and after are (n_items,). `coefficients` are those of p(x^2) as a
    Chebyshev series on A. Memory: those two, and the scores of the rows asked for, twice.
    """

    def score_histories(self, histories: csr_array) -> Tensor:
        signal = torch.from_numpy(histories.toarray()).float() * self.fitted["before"]
        filtered = filter_items(self.graph, signal.T, self.fitted["coefficients"])
        scores = filtered.T * self.fitted["after"]
        weights = torch.from_numpy((histories @ self.fitted["left"].numpy()).astype("float32"))
        return scores.addmm_(weights, self.fitted["right"].T)
