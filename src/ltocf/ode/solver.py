"""What a solver is: a trajectory of y' = x y, and how finely it steps.

dE/dt = A E is linear, so a solver acts on E as a function of the eigenvalues x of A: the one it
returns for y' = x y, y(0) = 1. Here x is a vector of sample points, solved all at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from ltocf.errors import ConfigError

Connection = Literal["linear", "residual"]
Trajectory = Callable[[Tensor, Tensor], Tensor]  # (start, times) -> the state at each of the times
DECAYED = 0.9  # what decays most quickly must have come down to at least this in an interval
MOST_STEPS = 256  # of an interval, to which steps are made smaller in search of a stable size


@dataclass(frozen=True)
class Solver(ABC):
    """A solver, with its steps (of a solver with fixed ones) or its tolerances (of an adaptive
    one). A new one is a subclass with a trajectory, and a line in `SOLVERS`."""

    steps: int = 1  # of equal size in an interval, unless there is a step size
    step_size: float | None = None
    rtol: float = 1e-7
    atol: float = 1e-9

    # How many steps of an interval some other method makes, until there is a history to go by.
    starting_steps: ClassVar[int] = 0

    @abstractmethod
    def trajectory(self, x: Tensor, start: Tensor, times: Tensor) -> Tensor:
        """y at each of the times, from y = start. (len(times), len(x))"""

    @property
    def reference(self) -> str | None:
        """What torchdiffeq calls the same method, if it has it."""
        return None

    def states(self, x: Tensor, times: Tensor, connection: Connection) -> Tensor:
        """What this solver makes of y(0) = 1 at each time, for y' = x y. (len(times), len(x))"""
        if self.starting_steps and connection == "linear":
            self._check_history(times)
        return connect(
            lambda start, times: self.trajectory(x, start, times),
            torch.ones_like(x),
            times,
            connection,
        )

    def grid(self, times: Tensor) -> Tensor:
        """The times with those of the steps between them: `steps` equal ones an interval, or ones
        of `step_size` with what is left at the end."""
        pieces = []
        for start, end in pairwise(times):
            if self.step_size is None:
                count = torch.arange(self.steps, dtype=times.dtype, device=times.device)
                pieces.append(start + (end - start) * (count / self.steps))
            else:
                n = max(1, int(torch.ceil((end - start).abs().detach() / self.step_size).item()))
                places = torch.arange(n, dtype=times.dtype, device=times.device) * self.step_size
                pieces.append(start + places * torch.sign(end - start).detach())
        return torch.cat([*pieces, times[-1:]])

    def is_stable(self, lowest: float, times: Tensor) -> bool:
        """Whether what should decay does so: from no interval does y' = x y, lowest <= x <= 0, come
        out larger than it went in. Too long a step of an explicit solver makes it grow instead."""
        x = torch.linspace(lowest, 0, 9, dtype=torch.float64)
        known = times.detach().cpu().double()
        ends = [
            self.trajectory(x, torch.ones_like(x), known[i : i + 2])[-1]
            for i in range(len(known) - 1)
        ]
        size = torch.stack(ends).abs()
        return float(size.max()) <= 1 + 1e-9 and float(size[:, 0].max()) <= DECAYED

    def stabilised(self, lowest: float, times: Tensor) -> Self:
        """This solver with as many more steps an interval as that takes."""
        solver = self
        while not solver.is_stable(lowest, times):
            if solver.steps >= MOST_STEPS:
                raise ConfigError(
                    f"no number of steps up to {MOST_STEPS} an interval is stable; use a smaller "
                    "end_time, or solver='exact'"
                )
            solver = replace(solver, steps=solver.steps + 1, step_size=None)
        return solver

    def _check_history(self, times: Tensor) -> None:
        fewest = min(len(self.grid(times[i : i + 2])) - 1 for i in range(len(times) - 1))
        if fewest <= self.starting_steps:
            # With so few it would be another solver under this one's name, as in the authors' code.
            raise ConfigError(
                f"{type(self).__name__} with connection='linear' starts a new history in each "
                f"interval, and {fewest} step(s) in it are too few; set "
                f"steps_per_interval={self.starting_steps + 2}"
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
