"""Random numbers as hashes of (key, position, draw): any thread or process draws the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def uniform(key: Any, position: Any, draw: Any, n: Any) -> Any:
    """An integer in [0, n): SplitMix64's finaliser over the counter, scaled by multiplication."""
    z = np.uint64(key) + np.uint64(position) * np.uint64(0x9E3779B97F4A7C15)
    z += (np.uint64(draw) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.int64(((z >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
