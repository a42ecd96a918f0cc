"""Adams-Moulton of order four: implicit, with a history of three steps."""

from __future__ import annotations

import torch
from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.propagation.one_step import rk4

STARTING_STEPS = 2  # made by RK4, until there is a history


def adams_moulton_trajectory(x: Tensor, start: Tensor, grid: Tensor) -> Tensor:
    """y on the grid, for y' = x y. (len(grid), len(x))

    y_{n+1} = y_n + h (9 f_{n+1} + 19 f_n - 5 f_{n-1} + f_{n-2}) / 24 when the steps are equal: the
    paper's equation. Learned times make unequal ones, with weights to match. Because f = x y, the
    implicit equation is solved by a division.
    """
    steps, y = grid.diff(), [start]
    for n, step in enumerate(steps):
        z = step * x
        if n < STARTING_STEPS:
            y.append(y[n] * rk4(z))
            continue
        new, *old = _weights(steps[n - 2 : n + 1])
        if (new * z).max() > 0.95:
            raise ConfigError(
                f"adams_moulton has no stable step of {step.item():.3g}; raise steps or time_points"
            )
        explicit = old[0] * y[n] + old[1] * y[n - 1] + old[2] * y[n - 2]
        y.append((y[n] + z * explicit) / (1 - new * z))
    return torch.stack(y)


def _weights(steps: Tensor) -> Tensor:
    """Those of f_{n+1}, f_n, f_{n-1}, f_{n-2} that integrate cubics exactly over the last step."""
    before, last, step = steps
    places = torch.stack(
        [torch.ones_like(step), torch.zeros_like(step), -last / step, -(before + last) / step]
    )
    powers = torch.stack([places**power for power in range(4)])
    integrals = torch.tensor([1, 1 / 2, 1 / 3, 1 / 4], dtype=steps.dtype, device=steps.device)
    weights: Tensor = torch.linalg.solve(powers, integrals)
    return weights
