"""What the neighbourhood models have in common: a sparse matrix of weights from item to item."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch import Tensor

from ltocf.data.histories import interaction_matrix as interaction_matrix  # most know it from here
from ltocf.data.histories import sparse_matrix
from ltocf.models.history import HistoryModel
from ltocf.scorers.item_item import ItemItemScorer


class ItemItemModel(HistoryModel):
    """Scores of a row r are r W. Memory: 8 bytes for each weight kept, and the rows asked for."""

    @abstractmethod
    def weights(self) -> csr_array:
        """W, row j holding what item j in a history adds to each other item."""

    def solve(self, seed: int) -> dict[str, Tensor]:
        W = self.weights()
        return {
            "indptr": torch.from_numpy(W.indptr.astype(np.int64)),
            "indices": torch.from_numpy(W.indices.astype(np.int32)),
            "values": torch.from_numpy(W.data.astype(np.float32)),
        }

    def scorer(self) -> ItemItemScorer:
        values = {"tag_weight": self.tag_weight}
        return ItemItemScorer(self.arrays(), self.history_weights, self.people, **values)


def sums_of(R: csr_array, axis: int) -> NDArray[np.float64]:
    """Of columns (0) or rows (1); for ones, the degrees."""
    return np.asarray(R.sum(axis=axis, dtype=np.float64)).ravel()


def scale(matrix: csr_array, rows: NDArray[np.float64], columns: NDArray[np.float64]) -> csr_array:
    """diag(rows) matrix diag(columns) in float32; products of SciPy's would take six times as
    long."""
    values = np.repeat(rows, np.diff(matrix.indptr)) * matrix.data * columns[matrix.indices]
    return sparse_matrix(values.astype(np.float32), matrix.indices, matrix.indptr, matrix.shape)


def inverse_powers(sums: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """sum^-exponent, nothing counting as 1."""
    power: NDArray[np.float64] = np.where(sums > 0, sums, 1) ** -exponent
    return power


def stack(blocks: Iterator[csr_array]) -> csr_array:
    return csr_array(vstack(list(blocks), format="csr"))
