"""ChebyCF: a flat-topped Chebyshev filter of the item graph plus an ideal low-pass filter."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from ltocf.filters.chebyshev import chebyshev_coefficients, evaluate
from ltocf.filters.items import deflate
from ltocf.graph.spectrum import powers, singular_vectors
from ltocf.models.history import TaggedConfig
from ltocf.models.itemfilter import ItemFilterModel


class ChebyCFConfig(TaggedConfig, frozen=True):
    order: int = Field(8, ge=1)  # K in the paper
    flatness: float = Field(1.5, gt=0)  # phi
    rank: int = Field(512, ge=1)  # eta, of the ideal filter and of the deflation
    ideal_weight: float = 0.2  # alpha
    degree_power: float = 0.4  # beta
    degree: int = Field(2, ge=1)  # of the polynomial below the leading values; `order` is exact


class ChebyCF(ItemFilterModel):
    """Kim et al., "Graph Spectral Filtering with Chebyshev Interpolation for Recommendation",
    SIGIR 2025: `r D^-b (h(P) + a V V^T) D^b`, h of degree K.

    The paper's h follows a plateau that it samples at the extrema of T_K and interpolates at the
    zeros of T_{K+1}, as if they were the same points; so does this. Deviation: h is applied exactly
    on the leading singular vectors and by a polynomial of a lower degree on the rest.
    """

    Config = ChebyCFConfig
    config: ChebyCFConfig

    def response(self, x: Tensor) -> Tensor:
        """h of the eigenvalues x of P."""
        order, flatness = self.config.order, self.config.flatness
        extrema = torch.cos(torch.pi * torch.arange(order + 1, dtype=torch.float64) / order)
        plateau = (1 - extrema.sign() * extrema.abs() ** flatness) / 2
        return evaluate(chebyshev_coefficients(plateau, tolerance=0), (1 - 2 * x).clamp(-1, 1))

    def solve(self, seed: int) -> dict[str, Tensor]:
        values, V = singular_vectors(self.graph, self.config.rank)
        degrees, power = self.graph.interactions.item_strengths, self.config.degree_power
        before, after = powers(degrees, -power), powers(degrees, power)
        coefficients, excess = deflate(self.response, values**2, self.config.degree)
        weights = (excess + self.config.ideal_weight).float()
        return {
            "coefficients": coefficients,
            "before": before,
            "after": after,
            "left": before[:, None] * V * weights,
            "right": after[:, None] * V,
        }
