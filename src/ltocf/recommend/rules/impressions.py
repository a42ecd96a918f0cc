"""What was shown and never taken fades from a list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError


def fading(shown: NDArray[np.integer], half_life: float) -> NDArray[np.float32]:
    """By what an item's score is multiplied after it was shown so many times and not taken: 1/2
    after `half_life` times, 1/4 after twice as many."""
    if not half_life > 0:
        raise ConfigError(f"the half-life of what is shown must be above 0, got {half_life!r}")
    return np.exp2(-shown / half_life).astype(np.float32)


def scaled(scores: NDArray[np.float32], factors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores that a factor above 1 raises and one below 1 lowers, whatever their sign: what is
    below 0 is divided."""
    return np.where(scores > 0, scores * factors, scores / factors)


def scale_(scores: NDArray[np.float32], factors: NDArray[np.float32]) -> None:
    """The same for every row of scores, in place. (n, n_items), (n_items,)"""
    scores *= np.where(scores > 0, factors, 1 / factors)


def fade_(scores: NDArray[np.float32], shown: csr_array, half_life: float) -> None:
    """Lower, in place, the score of everything that somebody was shown and did not take.

    `shown` counts how often, and leaves out what was taken since. (n_people, n_items)
    """
    people = np.repeat(np.arange(shown.shape[0]), np.diff(shown.indptr))
    factors = fading(shown.data, half_life)
    scores[people, shown.indices] = scaled(scores[people, shown.indices], factors)


def shown_in_vain(shown: Sequence[tuple[Rows, Rows]], n_items: int) -> csr_array:
    """How often each one was shown what they did not take; of each one the items that were shown,
    with repetitions, and those that were taken. (len(shown), n_items)"""
    rows, items = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for person, (seen, taken) in enumerate(shown):
        vain = seen[~np.isin(seen, taken)]
        rows.append(np.full(len(vain), person))
        items.append(vain.astype(np.int64))
    where = np.concatenate(rows), np.concatenate(items)
    counts = csr_array((np.ones(len(where[0])), where), shape=(len(shown), n_items))
    counts.sum_duplicates()
    return counts
