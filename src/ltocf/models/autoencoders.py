"""EASE's family: what EDLAE, RDLAE and DAN add to the linear map from a row to itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions
from ltocf.graph.kernels.sparse import squares_of_columns
from ltocf.models.history import TaggedConfig
from ltocf.models.itemitem import interaction_matrix, inverse_powers, sums_of


class AutoencoderConfig(TaggedConfig, frozen=True):
    """With zeros it is EASE."""

    l2: float = Field(100.0, gt=0)  # the larger, the less few shared users count
    dropout: float = Field(0.0, ge=0, lt=1)  # p in EDLAE: as if this share of a row were hidden
    self_weight: float = Field(0.0, ge=0, lt=1)  # xi in RDLAE: how far an item may explain itself
    user_power: float = Field(0.0, ge=0)  # beta in DAN: users count by degree^-user_power
    item_power: float = 0.0  # alpha in DAN: rare items gain by (degree / degree)^item_power


class LinearAutoencoder(NamedTuple):
    """`G = R^T diag(user_weights) R` and what is made of `P = (G + diag(penalties))^-1`.

    The map from a row to scores is `W = diag(items) B diag(1 / items)` with a zero diagonal, where
    `B = I - P diag(factors)` and `factors = max(penalties, (1 - xi) / diag(P))`. With xi = 0 that
    is 1 / diag(P), EASE's: each item regressed on all others. With more, an item that is explained
    best by itself may be so by xi, and what the others explain of it shrinks.

    EDLAE: Steck, "Autoencoders that don't overfit towards the Identity", NeurIPS 2020. RDLAE: Moon
    et al., "It's Enough: Relaxing Diagonal Constraints in Linear Autoencoders for Recommendation",
    SIGIR 2023. DAN: Park et al., "Why is Normalization Necessary for Linear Recommenders?", SIGIR
    2025.
    """

    R: csr_array  # (n_users, n_items)
    user_weights: NDArray[np.float64]  # (n_users,)
    penalties: NDArray[np.float64]  # (n_items,)
    items: NDArray[np.float64]  # (n_items,)
    self_weight: float

    @classmethod
    def of(cls, train: Interactions, config: AutoencoderConfig) -> LinearAutoencoder:
        R = interaction_matrix(train)
        squares = squares_of_columns(R)
        return cls(
            R,
            inverse_powers(sums_of(R, 1), config.user_power),
            config.l2 + config.dropout / (1 - config.dropout) * squares,
            inverse_powers(squares, -config.item_power),
            config.self_weight,
        )

    def factors(self, diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the columns of P are multiplied by, given its diagonal."""
        found: NDArray[np.float64] = np.maximum(self.penalties, (1 - self.self_weight) / diagonal)
        return found
