"""ODE solvers, each known by what it does to one scalar.

dE/dt = A E is linear, so a solver acts on E as a function of the eigenvalues x of A: the one it
returns for y' = x y, y(0) = 1. Here x is a vector of sample points, solved all at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ltocf.errors import ConfigError

Connection = Literal["linear", "residual"]
Growth = Callable[[Tensor], Tensor]  # z = step * x -> y(t + step) / y(t)


def euler(z: Tensor) -> Tensor:
    return 1 + z


def midpoint(z: Tensor) -> Tensor:
    return 1 + z * (1 + z / 2)


def rk4(z: Tensor) -> Tensor:
    return 1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4)))


GROWTH: dict[str, Growth] = {"euler": euler, "midpoint": midpoint, "rk4": rk4, "exact": torch.exp}
SOLVERS = tuple(GROWTH)


def check_solver(name: str) -> None:
    if name not in GROWTH:
        raise ConfigError(f"unknown solver {name!r}; choose one of: {', '.join(SOLVERS)}")


def states(
    x: Tensor, times: Tensor, solver: str, *, steps: int = 1, connection: Connection = "linear"
) -> Tensor:
    """What the solver makes of y(0) = 1 at each of the times, for y' = x y. (len(times), len(x))

    Residual: an interval starts from the state. Linear: from the last interval's increment.
    """
    check_solver(solver)
    growth = GROWTH[solver]
    state = [torch.ones_like(x)]
    for interval in times.diff():
        grown = growth(interval / steps * x) ** steps
        state.append(state[-1] * (grown if connection == "residual" else grown - 1))
    return torch.stack(state)
