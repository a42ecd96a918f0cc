"""Adams-Moulton of order four: implicit, with a history of three steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.ode.one_step import rk4
from ltocf.ode.solver import Solver

STARTING_STEPS = 2  # taken by RK4, until there is a history


@dataclass(frozen=True)
class AdamsMoulton(Solver):
    """It has no `reference`, since torchdiffeq's `implicit_adams` is of another order."""

    starting_steps: ClassVar[int] = STARTING_STEPS

    def trajectory(self, x: Tensor, start: Tensor, times: Tensor) -> Tensor:
        grid = self.grid(times)
        return _on_grid(x, start, grid)[torch.searchsorted(grid.detach(), times.detach())]


def _on_grid(x: Tensor, start: Tensor, grid: Tensor) -> Tensor:
    """y on the grid, for y' = x y. (len(grid), len(x))

    y_{n+1} = y_n + h (9 f_{n+1} + 19 f_n - 5 f_{n-1} + f_{n-2}) / 24 when the steps are equal: the
    paper's equation. Learned times make unequal steps, for which `_weights` generalises it. Because
    f = x y, the implicit equation is solved by a division.
    """
    steps, y = grid.diff(), [start]
    z = steps[:, None] * x
    for n in range(min(STARTING_STEPS, len(steps))):
        y.append(y[n] * rk4(z[n]))
    for n, (new, *old) in enumerate(_weights(steps), STARTING_STEPS):
        implicit = new * z[n]
        # The division below is by 1 - implicit, which must stay well away from zero.
        if implicit.max() > 0.95:
            raise ConfigError(
                f"adams_moulton is unstable with a step of {steps[n].item():.3g}; "
                "raise steps_per_interval or time_points"
            )
        explicit = old[0] * y[n] + old[1] * y[n - 1] + old[2] * y[n - 2]
        y.append((y[n] + z[n] * explicit) / (1 - implicit))
    return torch.stack(y)


def _weights(steps: Tensor) -> Tensor:
    """The weights of f_{n+1}, f_n, f_{n-1}, f_{n-2} for each step from the third on.
    (len(steps) - 2, 4)

    They integrate the cubic through those four points over the step. In units of the step, the
    points lie at 1, 0, -a and -b. For a = 1 and b = 2 they are 9, 19, -5 and 1 over 24.
    """
    before, last, step = steps[:-2], steps[1:-1], steps[2:]
    a, b = last / step, (before + last) / step
    return torch.stack(
        [
            (1 / 4 + (a + b) / 3 + a * b / 2) / ((1 + a) * (1 + b)),
            (1 / 12 + (a + b) / 6 + a * b / 2) / (a * b),
            -(1 / 12 + b / 6) / (a * (1 + a) * (b - a)),
            (1 / 12 + a / 6) / (b * (1 + b) * (b - a)),
        ],
        dim=1,
    )
