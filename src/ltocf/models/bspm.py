"""BSPM: blur a user's row on the item graph, then sharpen it by an ODE run the other way."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor

from ltocf.filters.items import deflate, filter_items
from ltocf.graph.spectrum import powers, singular_vectors
from ltocf.models.history import TaggedConfig
from ltocf.models.itemfilter import ItemFilterModel
from ltocf.ode.solvers import find_solver

IDEAL_DEGREE = 16  # in P; more than any of the published solvers makes, and it runs once


class BSPMConfig(TaggedConfig, frozen=True):
    merge: Literal["early", "late"] = "early"  # the ideal part before or after sharpening
    solver: str = "rk4"  # of the sharpening ODE
    steps: int = Field(1, ge=1)  # of the solver
    end_time: float = Field(2.5, ge=0)  # T_s in the paper
    ideal_weight: float = 0.2  # beta
    rank: int = Field(448, ge=1)  # of the ideal filter and of the deflation
    average: bool = False  # the mean of the blurred and the sharpened row
    degree: int = Field(2, ge=1)  # of the polynomial below the leading values

    @field_validator("solver")
    @classmethod
    def _known(cls, name: str) -> str:
        find_solver(name)
        return name


class BSPM(ItemFilterModel):
    """Choi et al., "Blurring-Sharpening Process Models for Collaborative Filtering", SIGIR 2023.

    Blurred B = r P, ideal I = r D^-1/2 V V^T D^1/2, and dy/dt = -y P from B + beta I (early merge),
    or from B with beta I added in the end (late). The ODE is linear: its solver is a response s(x),
    the one that LT-OCF's solvers give for the rate -x. Deviation: as in ChebyCF, x s(x) is exact
    on the leading singular vectors and a polynomial of a lower degree on the rest.
    """

    Config = BSPMConfig
    config: BSPMConfig

    def sharpening(self, x: Tensor) -> Tensor:
        """s(x): what is left of an eigenvector of P with value x at the end."""
        config = self.config
        times = torch.tensor([0.0, config.end_time], dtype=torch.float64)
        end = find_solver(config.solver, steps=config.steps).states(-x, times, "residual")[-1]
        return (1 + end) / 2 if config.average else end

    def ideal_sharpening(self, x: Tensor) -> Tensor:
        """The same for the ideal part, of which the blurred row has none."""
        if self.config.merge == "late":
            return torch.ones_like(x)
        return self.sharpening(x) - (0.5 if self.config.average else 0)

    def solve(self, seed: int) -> dict[str, Tensor]:
        config, degrees = self.config, self.graph.interactions.item_strengths
        values, V = singular_vectors(self.graph, config.rank)
        coefficients, excess = deflate(lambda x: x * self.sharpening(x), values**2, config.degree)
        even, _ = deflate(self.ideal_sharpening, torch.empty(0), IDEAL_DEGREE)
        ideal = filter_items(self.graph, powers(degrees, 0.5)[:, None] * V, even)
        return {
            "coefficients": coefficients,
            "before": torch.ones(len(V)),
            "after": torch.ones(len(V)),
            "left": torch.cat(
                [V * excess.float(), powers(degrees, -0.5)[:, None] * V * config.ideal_weight], 1
            ),
            "right": torch.cat([V, ideal], 1),
        }
