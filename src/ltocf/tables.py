"""Large arrays that are used again: memory that is new to a process has to be found and zeroed by
the operating system, which can take as long as the work that is done on it."""

from __future__ import annotations

import math
import sys
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE = 64  # bytes of a cache line, on which every array begins


class Tables:
    """Makes arrays, and hands each out again as soon as nobody refers to it or a part of it.

    It holds what was in use at a time, at the most, until it is let go of itself.
    """

    def __init__(self) -> None:
        self._made: list[NDArray[np.uint8]] = []
        self._lock = Lock()

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """A C-contiguous array of any content, whose memory nobody else has."""
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        with self._lock:
            memory = self._unused(size)
            start = -memory.ctypes.data % LINE
            return memory[start : start + size].view(kind).reshape(shape)

    def _unused(self, size: int) -> NDArray[np.uint8]:
        for place in range(len(self._made)):
            # A tensor or a slice refers to the array whose memory it uses, so the count tells.
            if len(self._made[place]) == size + LINE and _references(self._made, place) <= OURS:
                return self._made[place]
        self._made.append(np.empty(size + LINE, np.uint8))
        return self._made[-1]


def _references(arrays: list[NDArray[np.uint8]], place: int) -> int:
    return sys.getrefcount(arrays[place])


OURS = _references([np.empty(0, np.uint8)], 0)  # of an array that only a list refers to
