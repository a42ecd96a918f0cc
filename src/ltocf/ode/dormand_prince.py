"""Dormand-Prince with adaptive steps, on a vector of scalar problems y' = x y."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.ode.one_step import DIFFERENCE, FIFTH, dormand_prince
from ltocf.ode.solver import Solver

# A step is at most GROW times and at least SHRINK times as long as the last; the usual constants.
SAFETY, SHRINK, GROW, MOST_STEPS = 0.9, 0.2, 10.0, 10_000


@dataclass(frozen=True)
class DormandPrince(Solver):
    @property
    def reference(self) -> str:
        return "dopri5"

    def trajectory(self, x: Tensor, start: Tensor, times: Tensor) -> Tensor:
        """Steps are first chosen, without gradients, as fractions of their interval, and then taken
        with gradients. So the result is differentiable in the times, which are hit exactly."""
        states = [start]
        for interval in times.diff():
            fractions = _choose_steps(
                x.detach().cpu().numpy() * interval.item(),
                states[-1].detach().cpu().numpy(),
                self.rtol,
                self.atol,
            )
            steps = interval * torch.from_numpy(fractions).to(x)
            states.append(states[-1] * dormand_prince(steps[:, None] * x).prod(0))
        return torch.stack(states)


def _choose_steps(
    z: NDArray[np.float64], y: NDArray[np.float64], rtol: float, atol: float
) -> NDArray[np.float64]:
    """Steps as fractions of the interval, each with an estimated error within the tolerance. They
    sum to 1."""
    done, fraction = 0.0, 1.0
    fractions: list[float] = []
    while done < 1:
        fraction = min(fraction, 1 - done)
        after = y * np.polynomial.polynomial.polyval(fraction * z, FIFTH)
        error = np.abs(y * np.polynomial.polynomial.polyval(fraction * z, DIFFERENCE))
        ratio = float((error / (atol + rtol * np.maximum(np.abs(y), np.abs(after)))).max())
        if ratio <= 1:
            done, y = done + fraction, after
            fractions.append(fraction)
        if len(fractions) > MOST_STEPS or fraction < 1e-12:
            raise ConfigError(f"rtol={rtol!r}, atol={atol!r} need too many steps; raise them")
        # The error of a step grows with its fifth power, hence the exponent -1/5.
        fraction *= min(GROW, max(SHRINK, SAFETY * max(ratio, 1e-10) ** -0.2))
    return np.array(fractions) / sum(fractions)
