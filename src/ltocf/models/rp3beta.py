"""RP3beta: a three-step random walk from the user, with popular items held back."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from ltocf.graph.kernels.sparse import product
from ltocf.models.history import TaggedConfig
from ltocf.models.itemitem import (
    ItemItemModel,
    interaction_matrix,
    inverse_powers,
    scale,
    sums_of,
)


class RP3BetaConfig(TaggedConfig, frozen=True):
    alpha: float = Field(0.8, gt=0)  # elementwise power of the transition probabilities
    beta: float = 0.4  # power of the degree that an item's weight is divided by
    neighbours: int = Field(500, ge=1)  # to keep of each item


class RP3Beta(ItemItemModel):
    """Paudel et al., "Updatable, Accurate, Diverse, and Scalable Recommendations for Interactive
    Applications", TiiS 2017: `W = (D_i^-1 R^T)^a (D_u^-1 R)^a D_i^-b`, powers by element; the
    largest weights of each row, normalised to sum 1."""

    Config = RP3BetaConfig
    config: RP3BetaConfig

    def weights(self) -> csr_array:
        train, config = self.graph.interactions, self.config
        R = interaction_matrix(train)
        item_sums = sums_of(R, 0)
        user_steps = inverse_powers(sums_of(R, 1), config.alpha)
        item_steps = inverse_powers(item_sums, config.alpha)
        R.data **= np.float32(config.alpha)
        from_items = scale(csr_array(R.T), item_steps, np.ones(train.n_users))
        from_users = scale(R, user_steps, inverse_powers(item_sums, config.beta))
        W = product(from_items, from_users, largest=config.neighbours, diagonal=False)
        sums = np.asarray(W.sum(axis=1)).ravel()
        return scale(W, 1 / np.where(sums > 0, sums, 1), np.ones(train.n_items))
