"""What a solver is: a trajectory of y' = x y, and how finely it steps.

dE/dt = A E is linear, so what a solver does to E is a function of the eigenvalues x of A: its
result for the scalar problem y' = x y, y(0) = 1. Here x is a vector of samples, solved all at once.
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
DECAYED = 0.9  # a stable solver shrinks the fastest-decaying component to at most this per interval
MOST_STEPS = 256  # per interval, when looking for a stable number of steps


@dataclass(frozen=True)
class Solver(ABC):
    """A solver with its settings: a fixed-step one uses the steps, an adaptive one the tolerances.
    To add a solver, write a subclass with a trajectory and add a line to `SOLVERS`."""

    steps: int = 1  # of equal size per interval, unless step_size is given
    step_size: float | None = None
    rtol: float = 1e-7
    atol: float = 1e-9

    # A multi-step method takes its first steps by another method, until it has a history.
    starting_steps: ClassVar[int] = 0

    @abstractmethod
    def trajectory(self, x: Tensor, start: Tensor, times: Tensor) -> Tensor:
        """y at each of the times, from y = start. (len(times), len(x))"""

    @property
    def reference(self) -> str | None:
        """What torchdiffeq calls the same method, if it has it."""
        return None

    def states(self, x: Tensor, times: Tensor, connection: Connection) -> Tensor:
        """The state at each time for y' = x y, y(0) = 1, as `connect` defines it.
        (len(times), len(x))"""
        if self.starting_steps and connection == "linear":
            self._check_history(times)
        return connect(
            lambda start, times: self.trajectory(x, start, times),
            torch.ones_like(x),
            times,
            connection,
        )

    def grid(self, times: Tensor) -> Tensor:
        """The times and the steps between them: `steps` equal ones per interval, or steps of
        `step_size`, of which the last is shorter."""
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
        """Whether y' = x y grows in no interval, for lowest <= x <= 0. The exact solution decays;
        an explicit solver whose steps are too long makes it grow instead."""
        x = torch.linspace(lowest, 0, 9, dtype=torch.float64)
        known = times.detach().cpu().double()
        ends = [
            self.trajectory(x, torch.ones_like(x), known[i : i + 2])[-1]
            for i in range(len(known) - 1)
        ]
        size = torch.stack(ends).abs()
        return float(size.max()) <= 1 + 1e-9 and float(size[:, 0].max()) <= DECAYED

    def stabilised(self, lowest: float, times: Tensor) -> Self:
        """This solver, with as many steps per interval as it takes to be stable."""
        solver = self
        while not solver.is_stable(lowest, times):
            if solver.steps >= MOST_STEPS:
                raise ConfigError(
                    f"the solver is unstable even with {MOST_STEPS} steps per interval; use a "
                    "smaller end_time, or solver='exact'"
                )
            solver = replace(solver, steps=solver.steps + 1, step_size=None)
        return solver

    def _check_history(self, times: Tensor) -> None:
        fewest = min(len(self.grid(times[i : i + 2])) - 1 for i in range(len(times) - 1))
        if fewest <= self.starting_steps:
            # With so few steps only the starting method would ever run, as in the authors' code.
            raise ConfigError(
                f"{type(self).__name__} with connection='linear' restarts in each interval and "
                f"needs more than {self.starting_steps} steps there, not {fewest}; set "
                f"steps_per_interval={self.starting_steps + 2}"
            )


def connect(trajectory: Trajectory, start: Tensor, times: Tensor, connection: Connection) -> Tensor:
    """The states to combine, one per time, the one at time 0 first. (len(times), *start.shape)

    Residual: the solver runs through all intervals. Linear: a state is the increment over its
    interval, and the next interval starts from that increment.
    """
    if connection == "residual":
        return trajectory(start, times)
    states = [start]
    for interval in range(len(times) - 1):
        before = states[-1]
        states.append(trajectory(before, times[interval : interval + 2])[-1] - before)
    return torch.stack(states)
