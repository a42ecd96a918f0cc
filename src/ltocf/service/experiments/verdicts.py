"""Verdicts that stay valid however often one looks.

Each person counts once, with an outcome y (taken or not) and an arm. If the arms do not differ, a
person's arm is independent of y. The evidence against that is a ratio of likelihoods of the arms:
given y, under a mixture of all ways in which the arms could differ, over the largest without y. For
any split of the people its expectation never exceeds 1. So by Ville's inequality the probability
that it ever reaches 1 / alpha is at most alpha (universal inference: Wasserman, Ramdas and
Balakrishnan 2020; Johari et al. 2017 for the mSPRT). Nothing is assumed about how outcomes depend
on time or on each other, since only the arms, which were drawn by a hash, are random.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

ALPHA = 0.05
WEIGHT = 100.0  # of the mixture's prior, in people; it suits effects of some tens of per cent
STEPS = 60  # of the search for the end of an interval

Numbers = NDArray[np.float64]


class Counts(NamedTuple):
    """People of one arm whose outcome is known, and those of them who took something."""

    people: int = 0
    taken: int = 0


class Interval(NamedTuple):
    low: float
    high: float


def log_evidence(
    taken_a: ArrayLike, missed_a: ArrayLike, taken_b: ArrayLike, missed_b: ArrayLike, share: float
) -> Numbers:
    """The logarithm of the evidence that two arms differ, where b was planned to get `share` of the
    people. Counts may be arrays of the same length."""
    from scipy.special import betaln, xlogy  # imported here, since most services have no experiment

    counts = np.asarray([taken_a, missed_a, taken_b, missed_b], dtype=np.float64)
    a1, a0, b1, b0 = counts
    b_prior, a_prior = WEIGHT * share, WEIGHT * (1 - share)
    prior = betaln(b_prior, a_prior)
    given_outcome = betaln(b_prior + b1, a_prior + a1) + betaln(b_prior + b0, a_prior + a0)
    a, b = a1 + a0, b1 + b0
    n = np.maximum(a + b, 1)
    without = xlogy(a, a / n) + xlogy(b, b / n)
    return np.asarray(given_outcome - 2 * prior - without, dtype=np.float64)


def differ(a: Counts, b: Counts, share: float, alpha: float = ALPHA) -> bool:
    """Whether the arms differ: wrong with a probability of at most alpha, at whatever moment and
    however often this is asked."""
    evidence = log_evidence(a.taken, a.people - a.taken, b.taken, b.people - b.taken, share)
    return bool(evidence >= -np.log(alpha))


def log_paired_evidence(only_a: ArrayLike, only_b: ArrayLike) -> Numbers:
    """The same for two models that are judged on the same people. Only people whom one of the two
    models hit count: without a difference, each of them is the toss of a fair coin."""
    from scipy.special import betaln

    a, b = np.asarray(only_a, dtype=np.float64), np.asarray(only_b, dtype=np.float64)
    half = WEIGHT / 2
    evidence = betaln(half + a, half + b) - betaln(half, half) + (a + b) * np.log(2)
    return np.asarray(evidence, dtype=np.float64)


def interval(counts: Counts, alpha: float = ALPHA) -> Interval | None:
    """An interval that contains the rate of an arm at all times at once with a probability of 1 -
    alpha: all rates against which the mixture of all rates has less evidence than 1 / alpha."""
    if counts.people == 0:
        return None
    from scipy.special import betaln, xlogy

    taken, missed = counts.taken, counts.people - counts.taken
    whole = float(betaln(1 + taken, 1 + missed)) + np.log(alpha)

    def fits(rate: float) -> bool:
        return bool(xlogy(taken, rate) + xlogy(missed, 1 - rate) >= whole)

    middle = taken / counts.people
    return Interval(_end(fits, middle, 0.0), _end(fits, middle, 1.0))


def _end(fits: Any, inside: float, outside: float) -> float:
    if fits(outside):
        return outside
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return inside
