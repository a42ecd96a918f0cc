"""iALS: matrix factorisation of all pairs, unobserved ones with a small weight, in closed steps."""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.models.history import HistoryModel, TaggedConfig
from ltocf.models.itemitem import interaction_matrix
from ltocf.scorers.solved_vectors import SolvedVectorsScorer, solve_rows


class IALSConfig(TaggedConfig, frozen=True):
    dim: int = Field(64, ge=1)  # of the vectors
    unobserved_weight: float = Field(0.01, gt=0)  # alpha_0, of every pair; an observed one has 1
    l2: float = Field(0.003, gt=0)  # lambda, times (pairs + unobserved weight of the rest)^power
    frequency_power: float = Field(1.0, ge=0)  # nu: 1 regularises by how often, 0 all alike
    rounds: int = Field(12, ge=1)  # of solving for the users and then for the items


class IALS(HistoryModel):
    """Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008,
    as in Rendle et al., "Revisiting the Performance of iALS on Item Recommendation Benchmarks",
    RecSys 2022:

    `sum over observed of s (w_u . h_i - 1)^2 + alpha_0 sum over all of (w_u . h_i)^2 +
    sum lambda_u |w_u|^2 + sum lambda_i |h_i|^2` with `lambda_u = lambda (n_u + alpha_0 n_items)^nu`
    and likewise for items; s is a strength, 1 where there are no weights.

    For fixed items the best `w_u = (alpha_0 H^T H + sum s h_i h_i^T + lambda_u)^-1 sum s h_i`, for
    anybody with a history: a newcomer is one solve, and a score is a sum over the history once the
    inverse is there. Fitted: `items`, H. Deviation: recency weighs s where a history is read, not
    in fitting. Memory: the two tables and their transposed pairs; time: pairs dim^2 a round.
    """

    Config = IALSConfig
    config: IALSConfig

    def bytes_to_fit(self) -> float:
        return 8.0 * self.graph.n_nodes * self.config.dim + 16.0 * len(self.graph.interactions)

    def solve(self, seed: int) -> dict[str, Tensor]:
        R = interaction_matrix(self.graph.interactions)
        by_item = csr_array(R.T)
        shape = self.graph.n_items, self.config.dim
        random = np.random.default_rng(seed)
        items = (random.standard_normal(shape) * 0.1 / np.sqrt(shape[1])).astype(np.float32)
        for done in range(self.config.rounds):
            self.report("solving", done, self.config.rounds)
            users = solve_rows(R, items, self.values())
            items = solve_rows(by_item, users, self.values())
        return {"items": torch.from_numpy(items)}

    def values(self) -> dict[str, float]:
        """What a solve takes beside the vectors."""
        config = self.config
        return {
            "unobserved_weight": config.unobserved_weight,
            "l2": config.l2,
            "frequency_power": config.frequency_power,
        }

    def scorer(self) -> SolvedVectorsScorer:
        train = self.people
        return SolvedVectorsScorer(self.arrays(), self.history_weights, train, **self.values())
