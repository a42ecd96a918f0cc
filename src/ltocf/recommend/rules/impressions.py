"""Lower the scores of items that were shown and never taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError


def fading(shown: NDArray[np.integer], half_life: float) -> NDArray[np.float32]:
    """The factors of scores after items were shown so many times and not taken: 1/2 after
    `half_life` times, 1/4 after twice as many."""
    if not half_life > 0:
        raise ConfigError(f"the half-life of shown items must be above 0, got {half_life!r}")
    return np.exp2(-shown / half_life).astype(np.float32)


def scaled(scores: NDArray[np.float32], factors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores times factors. A score below 0 is divided instead, so that a factor above 1 always
    raises a score and one below 1 lowers it."""
    return np.where(scores > 0, scores * factors, scores / factors)


def scale_(scores: NDArray[np.float32], items: Rows, factors: NDArray[np.float32]) -> None:
    """The same for these items in every row of scores, in place. (n, n_items), (k,), (k,)"""
    for row in scores:  # a row at a time: entries of a table take several times as long to gather
        row[items] = scaled(row[items], factors)
