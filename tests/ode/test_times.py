from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltocf.errors import ConfigError
from ltocf.ode.times import Gaps, TimePoints, evenly


def test_even_times_cut_the_interval_in_equal_parts() -> None:
    assert evenly(3, 4.0) == [1, 2, 3]
    assert evenly(0, 4.0) == []


@settings(deadline=None)
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=6))
def test_projection_restores_the_order_from_anywhere(values: list[float]) -> None:
    times = TimePoints(evenly(len(values), 4.0), 4.0)
    with torch.no_grad():
        times.inner.copy_(torch.tensor(values))
    times.project_()
    assert (times().diff() > 0).all()
    assert times()[0] == 0 and times()[-1] == 4


def test_projection_leaves_ordered_times_alone() -> None:
    times = TimePoints([0.5, 2.0, 3.25], 4.0)
    times.project_()
    torch.testing.assert_close(times().tolist(), [0.0, 0.5, 2.0, 3.25, 4.0])


def test_projection_moves_a_time_no_further_than_its_neighbour() -> None:
    times = TimePoints([1.0, 2.0], 4.0)
    with torch.no_grad():
        times.inner[1] = 0.9
    times.project_()
    assert times().tolist() == pytest.approx([0, 1, 1.0004, 4])


@pytest.mark.parametrize("inner", [[2.0, 1.0], [0.0], [4.0], [1.0, 1.0]])
def test_given_times_must_increase_inside_the_interval(inner: list[float]) -> None:
    with pytest.raises(ConfigError, match="must increase strictly inside"):
        TimePoints(inner, 4.0)
    with pytest.raises(ConfigError, match="must increase strictly inside"):
        Gaps(inner, 4.0)


def test_times_learn_only_when_asked() -> None:
    assert TimePoints([1.0], 2.0).inner.requires_grad
    assert not TimePoints([1.0], 2.0, learn=False).inner.requires_grad


def test_gaps_are_times_in_order_whatever_their_logarithms_are() -> None:
    gaps = Gaps([0.5, 2.0], 2.25)
    torch.testing.assert_close(gaps().tolist(), [0.0, 0.5, 2.0, 2.25])
    with torch.no_grad():
        gaps.logs.normal_(0, 3)
    assert (gaps().diff() > 0).all()


@pytest.mark.parametrize("times", [TimePoints([0.5, 2.0], 4.0), Gaps([0.5, 2.0], 4.0)])
def test_both_parametrisations_stretch_alike(times: TimePoints | Gaps) -> None:
    times.stretch_(0.5)
    torch.testing.assert_close(times().tolist(), [0.0, 0.25, 1.0, 2.0])
    assert times.end == pytest.approx(2.0)
