"""EASE: the linear map from a row to itself, item from the others, in closed form."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array, eye_array
from torch import Tensor

from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.history import HistoryConfig, HistoryModel, HistoryScorer
from ltocf.models.itemitem import interaction_matrix
from ltocf.models.scorer import Scorer


class EASEConfig(HistoryConfig, frozen=True):
    l2: float = Field(80.0, gt=0)  # the larger, the less few shared users count
    gigabytes: float = Field(8.0, gt=0)  # refuse to need more for the inverse


class EASE(HistoryModel):
    """Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019.

    `G = R^T R + l2 I`, `B = I - G^-1 / diag(G^-1)`, scores `r B`. Memory: 4 n^2 bytes, n the
    smaller of users and items (Gowalla 3.6 GB), up to thrice that to fit; time n^3. Deviation: if
    users are fewer, G^-1 is written by their K = R R^T + l2 I: G^-1 = (I - R^T K^-1 R) / l2, and
    R G^-1 = K^-1 R, so that a known user is one row of K^-1. Fitted: `inverse`, of G or of K, and
    `diagonal`, of G^-1.
    """

    Config = EASEConfig
    config: EASEConfig

    def __init__(self, graph: BipartiteGraph, config: EASEConfig) -> None:
        super().__init__(graph, config)
        self.by_users = graph.n_users < graph.n_items
        self.R = interaction_matrix(graph.interactions)
        needed = 4e-9 * min(graph.n_users, graph.n_items) ** 2
        if needed > config.gigabytes:
            raise ConfigError(
                f"ease needs {needed:.1f} GB for its inverse, which is more than "
                f"gigabytes={config.gigabytes}; allow more or use sparse_ease, which is sparse"
            )

    def bytes_to_fit(self) -> float:
        return 12.0 * min(self.graph.n_users, self.graph.n_items) ** 2

    def solve(self, seed: int) -> dict[str, Tensor]:
        R, l2 = self.R, self.config.l2
        gram = R @ R.T if self.by_users else R.T @ R
        inverse = _invert(csr_array(gram + l2 * eye_array(gram.shape[0], dtype=np.float32)))
        diagonal = (1 - _quadratic_forms(R, inverse)) / l2 if self.by_users else inverse.diagonal()
        return {
            "inverse": torch.from_numpy(inverse),
            "diagonal": torch.from_numpy(diagonal.astype(np.float32)),
        }

    def score_histories(self, histories: csr_array) -> Tensor:
        """Exact for anybody. Where users are fewer it costs a product with K^-1 for each row."""
        rows = torch.from_numpy(histories.toarray()).float()
        if not self.by_users:
            return rows - rows @ self.fitted["inverse"] / self.fitted["diagonal"]
        alike = torch.from_numpy((histories @ self.R.T).toarray())
        explained = torch.from_numpy((alike @ self.fitted["inverse"]).numpy() @ self.R)
        return rows - (rows - explained) / self.config.l2 / self.fitted["diagonal"]

    def scorer(self) -> Scorer:
        # A row of K^-1 stands for a row of R, which is the history only if that is of ones.
        plain = not self.history_weights.recency and self.graph.interactions.weights is None
        known = self.by_users and plain
        return _KnownUsers(self, self.history_weights) if known else super().scorer()


class _KnownUsers(HistoryScorer):
    model: EASE

    def __call__(self, users: Rows) -> Tensor:
        model = self.model
        weights = model.fitted["inverse"][torch.from_numpy(users.astype(np.int64))].numpy()
        rows = torch.from_numpy(self.train[users].toarray())
        return rows - torch.from_numpy(weights @ model.R) / model.fitted["diagonal"]


def _invert(matrix: csr_array) -> NDArray[np.float32]:
    """The dense inverse of a positive definite matrix, in the space of two."""
    # SciPy's LAPACK works in the space of one, and crashes at the size of Gowalla.
    factor = torch.linalg.cholesky(torch.from_numpy(matrix.toarray()))
    # LAPACK's inverse is column-major, so its transpose, the same matrix, is as a file holds it:
    # products with it round alike before saving and after loading.
    inverse: NDArray[np.float32] = torch.cholesky_inverse(factor).T.contiguous().numpy()
    return inverse


def _quadratic_forms(R: csr_array, inverse: NDArray[np.float32]) -> NDArray[np.float64]:
    """r_i^T K^-1 r_i for each column r_i of R."""
    columns = csr_array(R.T)
    forms = np.empty(columns.shape[0])
    for item in range(columns.shape[0]):
        entries = slice(columns.indptr[item], columns.indptr[item + 1])
        users, values = columns.indices[entries], columns.data[entries].astype(np.float64)
        forms[item] = values @ inverse[np.ix_(users, users)] @ values
    return forms
