"""The times at which LT-OCF reads the state of its ODE, in two parametrisations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltocf.errors import ConfigError

SMALLEST_GAP = 1e-4  # learned times stay this far apart, as a share of the end time


class Times(nn.Module, ABC):
    """0 < t_1 < ... < t_T < end, saved with the weights.

    They are float64: the published time learning rate, 1e-6, is near float32's spacing at t = 4.
    """

    @abstractmethod
    def forward(self) -> Tensor:
        """0, t_1, ..., t_T, end. (T + 2,)"""

    @abstractmethod
    def stretch_(self, factor: float) -> None:
        """Multiply all times by a factor, in place."""

    @abstractmethod
    def move_to_(self, times: Tensor) -> None:
        """Take over the times of another object that has as many, in place."""

    @abstractmethod
    def learned(self) -> list[nn.Parameter]:
        """The parameters that an optimiser may change."""

    def project_(self) -> None:
        """Restore the order of the times after an optimiser step, in place."""

    @property
    def end(self) -> float:
        return float(self().detach()[-1])


class TimePoints(Times):
    """The inner times themselves are the parameters, as in the paper; the end time is fixed."""

    def __init__(self, inner: Sequence[float], end: float, *, learn: bool = True) -> None:
        super().__init__()
        check_order(inner, end)
        self.inner = nn.Parameter(torch.tensor(inner, dtype=torch.float64), requires_grad=learn)
        self.last: Tensor
        self.register_buffer("last", torch.tensor(end, dtype=torch.float64))

    def forward(self) -> Tensor:
        return torch.cat([self.inner.new_zeros(1), self.inner, self.last[None]])

    @torch.no_grad()
    def stretch_(self, factor: float) -> None:
        self.inner.mul_(factor)
        self.last.mul_(factor)

    @torch.no_grad()
    def move_to_(self, times: Tensor) -> None:
        self.inner.copy_(times[1:-1])
        self.last.copy_(times[-1])

    def learned(self) -> list[nn.Parameter]:
        return [self.inner]

    @torch.no_grad()
    def project_(self) -> None:
        # Adam may push t_i past t_{i+1}; a negative interval would integrate backwards.
        end = float(self.last)
        n, gap = len(self.inner), SMALLEST_GAP * end
        if n == 0:
            return
        # Subtract the least room that the times before each one need. What is left only has to be
        # non-decreasing and within bounds, which cummax and clamp make it.
        room = gap * torch.arange(1, n + 1, dtype=self.inner.dtype, device=self.inner.device)
        slack = (self.inner - room).cummax(0).values.clamp(0, end - gap * (n + 1))
        self.inner.copy_(slack + room)


class Gaps(Times):
    """The logarithms of the gaps between the times are the parameters. Any real numbers give times
    in order, so nothing needs projecting; the end time is the sum of the gaps and learns too."""

    def __init__(self, inner: Sequence[float], end: float) -> None:
        super().__init__()
        check_order(inner, end)
        times = torch.tensor([0.0, *inner, end], dtype=torch.float64)
        self.logs = nn.Parameter(times.diff().log())

    def forward(self) -> Tensor:
        return F.pad(self.logs.exp().cumsum(0), (1, 0))

    @torch.no_grad()
    def stretch_(self, factor: float) -> None:
        self.logs.add_(torch.tensor(factor, dtype=torch.float64).log().item())

    @torch.no_grad()
    def move_to_(self, times: Tensor) -> None:
        self.logs.copy_(times.diff().log())

    def learned(self) -> list[nn.Parameter]:
        return [self.logs]


def evenly(n: int, end: float) -> list[float]:
    """n inner times that cut the interval up to `end` in equal parts."""
    return [end * (i + 1) / (n + 1) for i in range(n)]


def check_order(inner: Sequence[float], end: float) -> None:
    """A ConfigError unless 0 < t_1 < ... < t_T < end."""
    steps = [b - a for a, b in zip([0.0, *inner], [*inner, end], strict=True)]
    if not all(step > 0 for step in steps):
        raise ConfigError(
            f"times must increase strictly inside (0, end_time={end!r}), got {list(inner)!r}"
        )
