"""The times at which LT-OCF reads the state of its ODE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ltocf.errors import ConfigError

SMALLEST_GAP = 1e-4  # of the end time: learned times stay this far apart


class TimePoints(nn.Module):
    """0 < t_1 < ... < t_T < end: the inner times are learnable, and saved with the weights.

    They are float64: the published time learning rate, 1e-6, is near float32's spacing at t = 4.
    """

    def __init__(self, inner: Sequence[float], end: float, *, learn: bool = True) -> None:
        super().__init__()
        steps = [b - a for a, b in zip([0.0, *inner], [*inner, end], strict=True)]
        if not all(step > 0 for step in steps):
            raise ConfigError(
                f"times must increase strictly inside (0, end_time={end!r}), got {list(inner)!r}"
            )
        self.inner = nn.Parameter(torch.tensor(inner, dtype=torch.float64), requires_grad=learn)
        self.end: Tensor
        self.register_buffer("end", torch.tensor(end, dtype=torch.float64))

    @classmethod
    def evenly(cls, n: int, end: float, *, learn: bool = True) -> TimePoints:
        return cls([end * (i + 1) / (n + 1) for i in range(n)], end, learn=learn)

    def forward(self) -> Tensor:
        """0, t_1, ..., t_T, end. (T + 2,)"""
        return torch.cat([self.inner.new_zeros(1), self.inner, self.end[None]])

    @torch.no_grad()
    def stretch_(self, factor: float) -> None:
        self.inner.mul_(factor)
        self.end.mul_(factor)

    @torch.no_grad()
    def project_(self) -> None:
        """Restore 0 < t_1 < ... < t_T < end after an optimiser step, in place."""
        # Adam may push t_i past t_{i+1}; a negative interval would integrate backwards.
        end = float(self.end)
        n, gap = len(self.inner), SMALLEST_GAP * end
        if n == 0:
            return
        room = gap * torch.arange(1, n + 1, dtype=self.inner.dtype, device=self.inner.device)
        slack = (self.inner - room).cummax(0).values.clamp(0, end - gap * (n + 1))
        self.inner.copy_(slack + room)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *arguments: Any) -> None:
        state_dict.setdefault(f"{prefix}end", self.end)  # runs from when it was not saved
        super()._load_from_state_dict(state_dict, prefix, *arguments)
