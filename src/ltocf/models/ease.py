"""EASE: the linear map from a row to itself, item from the others, in closed form."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.kernels.sparse import times
from ltocf.machine.threads import for_factorising
from ltocf.models.autoencoders import AutoencoderConfig, LinearAutoencoder
from ltocf.models.history import HistoryModel
from ltocf.models.itemitem import scale
from ltocf.scorers.item_item import EASEScorer


class EASEConfig(AutoencoderConfig, frozen=True):
    l2: float = Field(80.0, gt=0)  # the larger, the less few shared users count
    gigabytes: float = Field(8.0, gt=0)  # refuse to need more for the inverse


class EASE(HistoryModel):
    """Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019, and its family: see
    `LinearAutoencoder`, whose letters these are.

    Memory: 4 n^2 bytes, n the smaller of users and items (Gowalla 3.6 GB), up to thrice that to
    fit; time n^3. Deviation: if users are fewer, P is written by a matrix of users. With
    `S = diag(user_weights)^1/2 R diag(penalties)^-1/2` and `K = S S^T + I`,
    `P = diag(penalties)^-1/2 (I - S^T K^-1 S) diag(penalties)^-1/2`, and `S - S S^T K^-1 S` is
    `K^-1 S`, so that a known user is one row of K^-1. Fitted: `inverse`, P or K^-1, and `diagonal`,
    of P.
    """

    Config = EASEConfig
    config: EASEConfig

    def __init__(self, graph: BipartiteGraph, config: EASEConfig) -> None:
        super().__init__(graph, config)
        graph = self.graph  # which may have tags beside the users
        self.by_users = graph.n_users < graph.n_items
        needed = 4e-9 * min(graph.n_users, graph.n_items) ** 2
        if needed > config.gigabytes:
            raise ConfigError(
                f"ease needs {needed:.1f} GB for its inverse, which is more than "
                f"gigabytes={config.gigabytes}; allow more, or use sparse_ease, which needs less"
            )
        self.form = form = LinearAutoencoder.of(graph.interactions, config)
        self.S = scale(form.R, np.sqrt(form.user_weights), form.penalties**-0.5)

    def bytes_to_fit(self) -> float:
        return 12.0 * min(self.graph.n_users, self.graph.n_items) ** 2

    def solve(self, seed: int) -> dict[str, Tensor]:
        S, penalties = self.S, self.form.penalties
        transposed = csr_array(S.T)
        gram = times(S, transposed) if self.by_users else times(transposed, S)
        np.einsum("ii->i", gram)[:] += 1
        inverse = _invert(gram)
        if self.by_users:
            diagonal = (1 - _quadratic_forms(S, inverse)) / penalties
        else:
            roots = (penalties**-0.5).astype(np.float32)
            inverse *= roots
            inverse *= roots[:, None]
            diagonal = inverse.diagonal().astype(np.float64)
        return {
            "inverse": torch.from_numpy(inverse),
            "diagonal": torch.from_numpy(diagonal.astype(np.float32)),
        }

    def scorer(self) -> EASEScorer:
        arrays, form = self.arrays(), self.form
        vectors = {
            "items": form.items,
            "roots": form.penalties**-0.5,
            "factors": form.factors(arrays["diagonal"].astype(np.float64)),
            "user_roots": np.sqrt(form.user_weights),
        }
        arrays |= {name: vector.astype(np.float32) for name, vector in vectors.items()}
        return EASEScorer(arrays, self.history_weights, self.people, tag_weight=self.tag_weight)


def _invert(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """The dense inverse of a positive definite matrix, in the space of two."""
    # SciPy's LAPACK works in the space of one, and crashes at the size of Gowalla.
    with for_factorising():
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(torch.from_numpy(matrix)))
    # LAPACK's inverse is column-major, so its transpose, the same matrix, is as a file holds it:
    # products with it round alike before saving and after loading.
    rows: NDArray[np.float32] = inverse.T.contiguous().numpy()
    return rows


def _quadratic_forms(S: csr_array, inverse: NDArray[np.float32]) -> NDArray[np.float64]:
    """s_i^T K^-1 s_i for each column s_i of S."""
    columns = csr_array(S.T)
    forms = np.empty(columns.shape[0])
    for item in range(columns.shape[0]):
        entries = slice(columns.indptr[item], columns.indptr[item + 1])
        users, values = columns.indices[entries], columns.data[entries].astype(np.float64)
        forms[item] = values @ inverse[np.ix_(users, users)] @ values
    return forms
