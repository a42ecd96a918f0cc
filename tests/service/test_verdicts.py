"""Verdicts of experiments: looking at every step must not raise the false alarms."""

import os

import numpy as np
import pytest

from ltocf.service.experiments.verdicts import (
    ALPHA,
    Counts,
    differ,
    interval,
    log_evidence,
    log_paired_evidence,
)

TESTS = int(os.environ.get("LTOCF_SIMULATIONS", "1000"))
PEOPLE = 2000


def simulate(rng, share, rate_a, rate_b, tests=TESTS, people=PEOPLE):
    """Counts (tests, people) of takers and others by arm, after each person."""
    b = rng.random((tests, people)) < share
    took = rng.random((tests, people)) < np.where(b, rate_b, rate_a)
    return (
        np.cumsum(~b & took, axis=1),
        np.cumsum(~b & ~took, axis=1),
        np.cumsum(b & took, axis=1),
        np.cumsum(b & ~took, axis=1),
    )


@pytest.mark.parametrize(("share", "rate"), [(0.5, 0.2), (0.1, 0.2), (0.5, 0.02)])
def test_looking_after_every_person_raises_fewer_than_five_false_alarms_in_a_hundred(share, rate):
    rng = np.random.default_rng(31)
    evidence = log_evidence(*simulate(rng, share, rate, rate), share=share)
    assert (evidence.max(axis=1) >= -np.log(ALPHA)).mean() <= ALPHA


def test_a_usual_test_would_raise_far_more():
    rng = np.random.default_rng(31)
    a1, a0, b1, b0 = simulate(rng, 0.5, 0.2, 0.2)
    a, b = np.maximum(a1 + a0, 1), np.maximum(b1 + b0, 1)
    pooled = (a1 + b1) / (a + b)
    error = np.sqrt(np.maximum(pooled * (1 - pooled) * (1 / a + 1 / b), 1e-12))
    z = np.abs(a1 / a - b1 / b) / error
    assert (z[:, 100:] > 1.96).any(axis=1).mean() > 0.2


def test_an_effect_that_depends_on_the_hour_but_not_on_the_arm_is_no_alarm():
    rng = np.random.default_rng(4)
    rate = 0.1 + 0.3 * (np.arange(PEOPLE) % 200 < 100)
    evidence = log_evidence(*simulate(rng, 0.5, rate, rate), share=0.5)
    assert (evidence.max(axis=1) >= -np.log(ALPHA)).mean() <= ALPHA


def test_a_split_that_went_wrong_is_no_effect():
    rng = np.random.default_rng(5)
    evidence = log_evidence(*simulate(rng, 0.7, 0.2, 0.2), share=0.5)
    assert (evidence.max(axis=1) >= -np.log(ALPHA)).mean() <= ALPHA


def test_a_real_difference_is_found():
    rng = np.random.default_rng(6)
    evidence = log_evidence(*simulate(rng, 0.5, 0.2, 0.3, tests=200), share=0.5)
    assert (evidence.max(axis=1) >= -np.log(ALPHA)).mean() > 0.95
    assert differ(Counts(2000, 400), Counts(2000, 600), 0.5)
    assert not differ(Counts(2000, 400), Counts(2000, 410), 0.5)
    assert not differ(Counts(), Counts(), 0.5)


def test_paired_models_that_do_not_differ_are_told_apart_as_rarely():
    rng = np.random.default_rng(7)
    only_a = np.cumsum(rng.random((TESTS, PEOPLE)) < 0.5, axis=1)
    evidence = log_paired_evidence(only_a, np.arange(1, PEOPLE + 1) - only_a)
    assert (evidence.max(axis=1) >= -np.log(ALPHA)).mean() <= ALPHA
    assert log_paired_evidence(30, 90) > -np.log(ALPHA)


def test_an_interval_holds_the_rate_at_every_moment():
    rng = np.random.default_rng(8)
    outside = 0
    for _ in range(60):
        taken = np.cumsum(rng.random(500) < 0.3)
        intervals = [interval(Counts(n, int(taken[n - 1]))) for n in range(1, 501, 7)]
        outside += any(not low <= 0.3 <= high for low, high in intervals)
    assert outside / 60 <= ALPHA + 0.05
    assert interval(Counts()) is None
    assert interval(Counts(10, 0)).low == 0.0 and interval(Counts(10, 10)).high == 1.0
    narrow = interval(Counts(10_000, 3000))
    assert narrow.low == pytest.approx(0.3, abs=0.03) and narrow.high == pytest.approx(
        0.3, abs=0.03
    )
