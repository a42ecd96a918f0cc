"""Attributes: items by what they are, and by what people who have one kind go on to have."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array, diags_array
from torch import Tensor

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.history import HistoryConfig, HistoryModel
from ltocf.models.itemitem import interaction_matrix, inverse_powers, sums_of
from ltocf.scorers.attributes import AttributesScorer, tag_vectors


class AttributesConfig(HistoryConfig, frozen=True):
    shared: float = Field(1.0, ge=0)  # weight of tags in common, where learned tags count 1
    l2: float = Field(10.0, gt=0)  # the larger, the less rare tags count in what is learned
    popularity_power: float = Field(0.3, ge=0)  # scores are times (1 + interactions)^power
    learned_tags: int = Field(1000, ge=1)  # the most frequent ones; memory grows with them


class Attributes(HistoryModel):
    """Scores are `r (V + shared Z) Z^T`, Z being the items' tags, weighed by log(n_items / items of
    the tag) and scaled to length 1, so that an item nobody has touched is scored like any other.

    `V = C Z (Z^T Z + l2)^-1` regresses `C`, what is had together, on the tags of the other item:
    V[i, t] is how much somebody with item i wants tag t. C is `R^T D_u^-1/2 R` without its
    diagonal, over the square root of the sums of its rows and of its columns to the power 0.3, and
    is never formed. Rows of V are scaled to a mean length of 1. Without any tags, each item is its
    own tag. Linear in the history, so that reasons are exact. Memory: 4 bytes for each item and tag
    that is learned.
    """

    Config = AttributesConfig
    config: AttributesConfig

    def __init__(self, graph: BipartiteGraph, config: AttributesConfig) -> None:
        super().__init__(graph, config)
        self.Z = tag_vectors(graph.interactions)

    def bytes_to_fit(self) -> float:
        return 12.0 * self.graph.n_items * min(self.config.learned_tags, self.Z.shape[1])

    def solve(self, seed: int) -> dict[str, Tensor]:
        """From the items that somebody has touched alone, so that others change nothing."""
        train = self.graph.interactions
        touched = np.flatnonzero(train.item_degrees)
        Z, R = csr_array(self.Z[touched]), csr_array(interaction_matrix(train)[:, touched])
        frequent = np.argsort(-np.diff(csr_array(Z.T).indptr), kind="stable")
        learned = np.sort(frequent[: self.config.learned_tags])
        Z = csr_array(Z[:, learned])
        gram = (Z.T @ Z).toarray().astype(np.float64) + self.config.l2 * np.eye(len(learned))
        wanted = (_times_together(R, Z) @ np.linalg.inv(gram)).astype(np.float32)
        lengths = np.linalg.norm(wanted, axis=1)
        wanted /= max(float(lengths[lengths > 0].mean()) if lengths.any() else 1.0, 1e-12)
        V = np.zeros((train.n_items, len(learned)), np.float32)
        V[touched] = wanted
        lift = (1.0 + train.item_degrees) ** self.config.popularity_power
        return {
            "wanted": torch.from_numpy(V),
            "learned": torch.from_numpy(learned),
            "lift": torch.from_numpy(lift).float(),
        }

    def scorer(self) -> AttributesScorer:
        train = self.graph.interactions
        shared = self.config.shared
        return AttributesScorer(self.arrays(), self.history_weights, train, shared=shared)


def _times_together(R: csr_array, Z: csr_array) -> NDArray[np.float64]:
    """C Z without forming C. (n_items, n_tags)"""
    users = inverse_powers(sums_of(R, 1), 0.5)
    squares = csr_array(R.power(2).T) @ users  # what C would have on its diagonal

    def times(columns: csr_array) -> NDArray[np.float64]:
        product = R.T @ (diags_array(users) @ (R @ columns))
        product = product - diags_array(squares) @ columns
        return np.asarray(product.toarray(), dtype=np.float64)

    # C is symmetric, so that its rows and columns have the same sums.
    ones = csr_array(np.ones((R.shape[1], 1), np.float32))
    sums = times(ones).ravel()
    sums[sums < 1e-9] = 0  # left by rounding, where nobody with the item has another
    scaled = csr_array(diags_array(inverse_powers(sums, 0.3)) @ Z)
    return inverse_powers(sums, 0.5)[:, None] * times(scaled)
