"""ODE solvers, each known by what it does to one scalar.

dE/dt = A E is linear, so a solver acts on E as a function of the eigenvalues x of A: the one it
returns for y' = x y, y(0) = 1. Here x is a vector of sample points, solved all at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.ode import one_step, torchdiffeq
from ltocf.ode.adams_moulton import STARTING_STEPS, adams_moulton_trajectory
from ltocf.ode.dormand_prince import adaptive_trajectory

Connection = Literal["linear", "residual"]
Trajectory = Callable[[Tensor, Tensor], Tensor]  # (start, times) -> the state at each of the times

ONE_STEP: dict[str, Callable[[Tensor], Tensor]] = {
    "euler": one_step.euler,
    "midpoint": one_step.midpoint,
    "rk4": one_step.rk4,
    "exact": one_step.exact,
}
SOLVERS = tuple(dict.fromkeys((*ONE_STEP, "adams_moulton", "dormand_prince", *torchdiffeq.METHODS)))


@dataclass(frozen=True)
class Solver:
    """A solver by name, with its steps or its tolerances; names beyond ours are torchdiffeq's."""

    name: str = "rk4"
    steps: int = 1  # of equal size in an interval, unless there is a step size
    step_size: float | None = None
    rtol: float = 1e-7
    atol: float = 1e-9

    def __post_init__(self) -> None:
        if self.name not in SOLVERS and self.name not in ONE_STEP:  # which may have grown
            raise ConfigError(f"unknown solver {self.name!r}; choose one of: {', '.join(SOLVERS)}")

    def states(self, x: Tensor, times: Tensor, connection: Connection) -> Tensor:
        """What this solver makes of y(0) = 1 at each time, for y' = x y. (len(times), len(x))"""
        if self.name == "adams_moulton" and connection == "linear":
            self._check_history(times)
        return connect(
            lambda start, times: self.trajectory(x, start, times),
            torch.ones_like(x),
            times,
            connection,
        )

    def trajectory(self, x: Tensor, start: Tensor, times: Tensor) -> Tensor:
        """y at each of the times, from y = start. (len(times), len(x))"""
        if self.name == "dormand_prince":
            return adaptive_trajectory(x, start, times, rtol=self.rtol, atol=self.atol)
        if self.name not in ("adams_moulton", *ONE_STEP):
            return self.integrate(lambda y: x * y, start, times, self.name)
        grid = self.grid(times)
        if self.name == "adams_moulton":
            y = adams_moulton_trajectory(x, start, grid)
        else:
            growth = ONE_STEP[self.name](grid.diff()[:, None] * x)
            y = torch.cat([start[None], start * growth.cumprod(0)])
        return y[torch.searchsorted(grid.detach(), times.detach())]

    def integrate(
        self,
        multiply: Callable[[Tensor], Tensor],
        start: Tensor,
        times: Tensor,
        method: str,
        *,
        adjoint: bool = False,
    ) -> Tensor:
        """The same through torchdiffeq, for y' = M y. (len(times), *start.shape)"""
        return torchdiffeq.trajectory(
            multiply, start, times, method,
            grid=self.grid, rtol=self.rtol, atol=self.atol, adjoint=adjoint,
        )  # fmt: skip

    def grid(self, times: Tensor) -> Tensor:
        return torchdiffeq.subdivide(times, self.steps, self.step_size)

    def _check_history(self, times: Tensor) -> None:
        fewest = min(len(self.grid(times[i : i + 2])) - 1 for i in range(len(times) - 1))
        if fewest <= STARTING_STEPS:
            # With so few it would be RK4 under another name, as in the authors' code.
            raise ConfigError(
                "adams_moulton with connection='linear' starts a new history in each interval, and "
                f"{fewest} step(s) in it are too few; set steps_per_interval={STARTING_STEPS + 2}"
            )


def connect(trajectory: Trajectory, start: Tensor, times: Tensor, connection: Connection) -> Tensor:
    """The states to combine, one a time, from the one at time 0. (len(times), *start.shape)

    Residual: the solver runs through. Linear: each interval starts from the last one's increment.
    """
    if connection == "residual":
        return trajectory(start, times)
    states = [start]
    for interval in range(len(times) - 1):
        before = states[-1]
        states.append(trajectory(before, times[interval : interval + 2])[-1] - before)
    return torch.stack(states)
