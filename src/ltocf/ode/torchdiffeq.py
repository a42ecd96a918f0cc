"""Linear ODEs y' = M y through torchdiffeq, where M is given by what it does to a state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torchdiffeq
from torch import Tensor

Grid = Callable[[Tensor], Tensor]  # times -> the times between which single steps are made
ADAPTIVE = ("dopri8", "dopri5", "bosh3", "fehlberg2", "adaptive_heun")
ON_A_GRID = ("euler", "midpoint", "heun2", "heun3", "rk4", "explicit_adams", "implicit_adams")
# All of torchdiffeq but SciPy's solvers, which have no gradients.
METHODS = ADAPTIVE + ON_A_GRID


def trajectory(
    multiply: Callable[[Tensor], Tensor],
    start: Tensor,
    times: Tensor,
    method: str,
    *,
    grid: Grid,
    rtol: float,
    atol: float,
    adjoint: bool = False,
) -> Tensor:
    """y at each of the times, from y = start. (len(times), *start.shape)

    `adjoint` integrates the gradient backwards in time, instead of through what the solver did.
    """
    settings: dict[str, Any] = {"method": method, "rtol": rtol, "atol": atol}
    if method in ON_A_GRID:
        settings["options"] = {"grid_constructor": lambda func, y0, t: grid(t)}
    solve = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint
    if adjoint:
        settings["adjoint_params"] = ()
    solution: Tensor = solve(lambda t, y: multiply(y), start, times, **settings)
    return solution


def subdivide(times: Tensor, steps: int, step_size: float | None) -> Tensor:
    """The times with those of the steps between them: `steps` equal ones an interval, or ones of
    `step_size` with what is left at the end."""
    pieces = []
    for start, end in pairwise(times):
        if step_size is None:
            fractions = torch.arange(steps, dtype=times.dtype, device=times.device) / steps
            pieces.append(start + (end - start) * fractions)
        else:
            count = max(1, int(torch.ceil((end - start).abs().detach() / step_size).item()))
            places = torch.arange(count, dtype=times.dtype, device=times.device) * step_size
            pieces.append(start + places * torch.sign(end - start).detach())
    return torch.cat([*pieces, times[-1:]])
