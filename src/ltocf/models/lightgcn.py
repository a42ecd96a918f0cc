"""LightGCN: the mean of the first powers of the normalised adjacency."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from ltocf.filters.chebyshev import chebyshev_coefficients, chebyshev_nodes
from ltocf.models.filter import FilterConfig, FilterModel


class LightGCNConfig(FilterConfig, frozen=True):
    layers: int = Field(3, ge=0)  # products with the graph


class LightGCN(FilterModel):
    """He et al., "LightGCN: Simplifying and Powering Graph Convolution Network for Recommendation",
    SIGIR 2020, eq. 8 with equal layer weights: h(x) = (1 + x + ... + x^L) / (L + 1)."""

    Config = LightGCNConfig
    config: LightGCNConfig

    def natural_coefficients(self) -> Tensor:
        nodes = chebyshev_nodes(
            self.config.layers + 1
        )  # as many as a polynomial of this degree needs
        powers = torch.stack([nodes**power for power in range(self.config.layers + 1)])
        return chebyshev_coefficients(powers.mean(0), tolerance=0)
