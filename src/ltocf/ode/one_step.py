"""One-step solvers by what they do to a scalar: y(t + step) / y(t) for y' = x y, z = step * x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltocf.ode.solver import Solver


def euler(z: Tensor) -> Tensor:
    return 1 + z


def midpoint(z: Tensor) -> Tensor:
    return 1 + z * (1 + z / 2)


def rk4(z: Tensor) -> Tensor:
    return 1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4)))


exact = torch.exp


@dataclass(frozen=True)
class OneStepSolver(Solver):
    """A solver that needs only the last state: a step multiplies y by growth(step * x)."""

    growth: Callable[[Tensor], Tensor] = rk4
    same_as: str | None = None  # torchdiffeq's name for it

    @property
    def reference(self) -> str | None:
        return self.same_as

    def trajectory(self, x: Tensor, start: Tensor, times: Tensor) -> Tensor:
        grid = self.grid(times)
        growth = self.growth(grid.diff()[:, None] * x)
        y = torch.cat([start[None], start * growth.cumprod(0)])
        return y[torch.searchsorted(grid.detach(), times.detach())]


# Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980. Row i has the weights that
# stage i gives to the stages before it. The last row is also the fifth-order solution.
DORMAND_PRINCE = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
FOURTH_ORDER = (5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)


def _stability_polynomial(weights: tuple[float, ...]) -> NDArray[np.float64]:
    """Coefficients, lowest degree first, of 1 + z b (I - z M)^-1 1: the growth of y in a step of a
    Runge-Kutta method with stages M and weights b."""
    stages = np.array([(*row, *[0.0] * (7 - len(row))) for row in DORMAND_PRINCE])
    terms, stage_values = [1.0], np.ones(7)
    for _ in range(7):
        terms.append(float(np.array(weights) @ stage_values))
        stage_values = stages @ stage_values
    return np.array(terms)


FIFTH = _stability_polynomial((*DORMAND_PRINCE[-1], 0.0))
DIFFERENCE = FIFTH - _stability_polynomial(FOURTH_ORDER)


def dormand_prince(z: Tensor) -> Tensor:
    total = torch.full_like(z, FIFTH[-1])
    for term in FIFTH[-2::-1]:
        total = total * z + term
    return total
