"""Turbo-CF: polynomial filters of a similarity graph whose weights are raised to a power."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.history import HistoryModel, TaggedConfig
from ltocf.models.itemitem import interaction_matrix, inverse_powers, scale, sums_of
from ltocf.scorers.item_item import PoweredScorer, power_of_product


class TurboCFConfig(TaggedConfig, frozen=True):
    alpha: float = 0.6  # how much of the normalisation is the users'
    power: float = Field(0.7, gt=0)  # s in the paper, elementwise
    filter: Literal["linear", "second"] = "linear"  # Q, or 2Q - Q^2
    neighbours: int = Field(0, ge=0)  # weights of Q to keep of each item; 0: all, as in the paper
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
        self.keeps_q = bool(config.neighbours) or (
            config.power != 1 and 8e-9 * self._most_entries <= config.gigabytes
        )

    @property
    def _most_entries(self) -> float:
        """No fewer than Q has."""
        together = np.square(self.graph.interactions.user_degrees.astype(np.float64)).sum()
        n_items, each = self.graph.n_items, self.config.neighbours or self.graph.n_items
        return min(float(together), float(n_items) * min(each, n_items))

    def bytes_to_fit(self) -> float:
        return 16.0 * self._most_entries if self.keeps_q else 0.0

    def solve(self, seed: int) -> dict[str, Tensor]:
        train, alpha = self.graph.interactions, self.config.alpha
        R = interaction_matrix(train)
        users = inverse_powers(sums_of(R, 1), alpha)
        matrix = scale(R, users, inverse_powers(sums_of(R, 0), 1 - alpha))
        if self.keeps_q:
            kept = self.config.neighbours or None
            matrix = power_of_product(csr_array(matrix.T), matrix, self.config.power, kept)
        return {
            "indptr": torch.from_numpy(matrix.indptr.astype(np.int64)),
            "indices": torch.from_numpy(matrix.indices.astype(np.int32)),
            "values": torch.from_numpy(matrix.data),
        }

    def scorer(self) -> PoweredScorer:
        config, train = self.config, self.people
        values = {"second": config.filter == "second", "power": config.power}
        values["tag_weight"] = self.tag_weight
        return PoweredScorer(
            self.arrays(), self.history_weights, train, keeps_q=bool(self.keeps_q), **values
        )
