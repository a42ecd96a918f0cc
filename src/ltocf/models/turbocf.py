"""Turbo-CF: polynomial filters of a similarity graph whose weights are raised to a power."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csc_array, csr_array
from torch import Tensor

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.history import HistoryConfig, HistoryModel
from ltocf.models.itemitem import ROWS, interaction_matrix, inverse_powers, scale, sums_of


class TurboCFConfig(HistoryConfig, frozen=True):
    alpha: float = 0.6  # how much of the normalisation is the users'
    power: float = Field(0.7, gt=0)  # s in the paper, elementwise
    filter: Literal["linear", "second"] = "linear"  # Q, or 2Q - Q^2
    gigabytes: float = Field(1.0, ge=0)  # keep Q if it may need no more than this


class TurboCF(HistoryModel):
    """Park, Shin and Shin, "Turbo-CF: Matrix Decomposition-Free Graph Filtering for Fast
    Recommendation", SIGIR 2024: `R_a = D_u^-a R D_i^(a-1)`, `Q = R_a^T R_a` to a power by element.

    Deviation: the paper's Q is dense. Here it is sparse, 8 bytes for each pair of items that some
    user has both of. With power 1, or where it would be too large, Q stays factored, and with
    another power its rows are made again, some at a time, for every block of users.
    """

    Config = TurboCFConfig
    config: TurboCFConfig

    def __init__(self, graph: BipartiteGraph, config: TurboCFConfig) -> None:
        super().__init__(graph, config)
        pairs = np.square(graph.interactions.user_degrees).sum()  # no fewer than Q has entries
        self.keeps_q = config.power != 1 and 8e-9 * pairs <= config.gigabytes

    def bytes_to_fit(self) -> float:
        pairs = np.square(self.graph.interactions.user_degrees.astype(np.float64)).sum()
        most = float(self.graph.n_items) ** 2
        return 16.0 * min(pairs, most) if self.keeps_q else 0.0

    def solve(self, seed: int) -> dict[str, Tensor]:
        train, alpha = self.graph.interactions, self.config.alpha
        R = interaction_matrix(train)
        users = inverse_powers(sums_of(R, 1), alpha)
        matrix = scale(R, users, inverse_powers(sums_of(R, 0), 1 - alpha))
        if self.keeps_q:
            matrix = _power_of_product(csr_array(matrix.T), matrix, self.config.power)
        return {
            "indptr": torch.from_numpy(matrix.indptr.astype(np.int64)),
            "indices": torch.from_numpy(matrix.indices.astype(np.int32)),
            "values": torch.from_numpy(matrix.data),
        }

    def score_histories(self, histories: csr_array) -> Tensor:
        once = self._times_q(histories.astype(np.float32))
        if self.config.filter == "linear":
            return torch.from_numpy(once)
        return torch.from_numpy(2 * once - self._times_q(once))

    def _times_q(self, rows: csr_array | NDArray[np.float32]) -> NDArray[np.float32]:
        parts = tuple(self.fitted[name].numpy() for name in ("values", "indices", "indptr"))
        matrix = csr_array(parts, shape=(len(parts[2]) - 1, self.graph.n_items))
        if self.keeps_q or self.config.power == 1:
            product = rows @ matrix if self.keeps_q else (rows @ matrix.T) @ matrix
            return np.ascontiguousarray(
                product if isinstance(product, np.ndarray) else product.toarray()
            )
        total = np.zeros(rows.shape, dtype=np.float32)
        columns, sparse = csc_array(matrix), csc_array(rows)
        present = np.flatnonzero(np.diff(sparse.indptr))
        for start in range(0, len(present), ROWS):
            items = present[start : start + ROWS]
            Q = _power_of_product(csr_array(columns[:, items].T), matrix, self.config.power)
            total += (sparse[:, items] @ Q).toarray()
        return total


def _power_of_product(left: csr_array, right: csr_array, power: float) -> csr_array:
    product = csr_array(left @ right)
    np.power(product.data, np.float32(power), out=product.data)
    return product
