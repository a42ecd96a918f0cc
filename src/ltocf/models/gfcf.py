"""GF-CF: one step on the item graph plus an ideal low-pass filter. Nothing is trained."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from ltocf.filters.items import deflate
from ltocf.graph.spectrum import powers, singular_vectors
from ltocf.models.history import TaggedConfig
from ltocf.models.itemfilter import ItemFilterModel


class GFCFConfig(TaggedConfig, frozen=True):
    rank: int = Field(256, ge=1)  # of the ideal filter
    ideal_weight: float = 0.3  # 0 leaves the linear filter alone, as on Amazon-Book


class GFCF(ItemFilterModel):
    """Shen et al., "How Powerful is Graph Convolution for Recommendation?", CIKM 2021, eq. 10:
    `r P + w r D^-1/2 V V^T D^1/2`, V the leading right singular vectors of N."""

    Config = GFCFConfig
    config: GFCFConfig

    def solve(self, seed: int) -> dict[str, Tensor]:
        rank = self.config.rank if self.config.ideal_weight else 1
        V = singular_vectors(self.graph, rank).items
        degrees = self.graph.interactions.item_strengths
        linear, _ = deflate(lambda x: x, torch.empty(0), degree=1)
        return {
            "coefficients": linear,
            "before": torch.ones(len(V)),
            "after": torch.ones(len(V)),
            "left": powers(degrees, -0.5)[:, None] * V * self.config.ideal_weight,
            "right": powers(degrees, 0.5)[:, None] * V,
        }
