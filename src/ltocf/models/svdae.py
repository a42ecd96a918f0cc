"""SVD-AE: a linear autoencoder of low rank, from the leading singular vectors."""

from __future__ import annotations

import torch
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.graph.spectrum import SingularVectors, powers, singular_vectors
from ltocf.models.history import TaggedConfig
from ltocf.models.itemfilter import ItemFilterModel
from ltocf.models.itemitem import interaction_matrix

SMALLEST_VALUE = 1e-4  # vectors of smaller singular values are rounding errors


class SVDAEConfig(TaggedConfig, frozen=True):
    # How many singular vectors have a say: with all of them a history returns itself. None: one in
    # 25, at most 256.
    rank: int | None = Field(None, ge=1)

    def rank_for(self, smaller: int) -> int:
        return self.rank or min(max(smaller // 25, 1), 256)


class SVDAE(ItemFilterModel):
    """Hong et al., "SVD-AE: Simple Autoencoders for Collaborative Filtering", IJCAI 2024, eq. 8:
    the least squares `min_B |R - N B|`, solved by the truncated `N = U S V^T`: `B = V S^-1 U^T R`.

    Scores of a history r are `r D^-1/2 B`. Deviation: the paper divides a user's row by the root of
    how many items they have, which changes no list; so a new user needs nothing but their history.
    """

    Config = SVDAEConfig
    config: SVDAEConfig

    def solve(self, seed: int) -> dict[str, Tensor]:
        train = self.graph.interactions
        smaller = min(self.graph.n_users, self.graph.n_items)
        values, V = singular_vectors(self.graph, self.config.rank_for(smaller))
        kept = values > SMALLEST_VALUE
        vectors = SingularVectors(values[kept], V[:, kept])
        R = csr_array(interaction_matrix(train).T)
        nothing = torch.zeros(len(V))
        return {
            "coefficients": torch.zeros(1),
            "before": nothing,
            "after": nothing,
            "left": powers(train.item_strengths, -0.5)[:, None] * vectors.items
            / vectors.values.float(),
            "right": torch.from_numpy(R @ vectors.users(self.graph).numpy()).float(),
        }  # fmt: skip
