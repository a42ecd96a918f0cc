from __future__ import annotations

from typing import Any

import pytest

from ltocf.search.climbing import ascend, paths_from

VALUES = (1, 2, 3, 4, 5)


def climbed(steps: Any, merit: Any) -> list[dict[str, Any]]:
    """All that was proposed, the merit of each answered."""
    tried = [next(steps)]
    while True:
        try:
            tried.append(steps.send(merit(tried[-1])))
        except StopIteration:
            return tried


@pytest.mark.parametrize("start", VALUES)
@pytest.mark.parametrize("peak", VALUES)
def test_a_climb_ends_at_the_only_peak_one_step_beyond_it(start: int, peak: int) -> None:
    def merit(options: dict[str, Any]) -> float:
        return -abs(options["value"] - peak)

    tried = climbed(ascend([{"value": start}], {"value": VALUES}, {}), merit)
    assert max(tried, key=merit) == {"value": peak}
    assert all(abs(one["value"] - peak) <= abs(start - peak) + 1 for one in tried)


def test_a_climb_goes_on_from_the_best_of_its_starts() -> None:
    def merit(options: dict[str, Any]) -> float:
        return float(options.get("a", 1) == 3) + float(options.get("b", 0) == 1)

    tried = climbed(ascend([{}, {"a": 3}], {"a": VALUES, "b": (0, 1)}, {"a": 1, "b": 0}), merit)
    assert tried[:2] == [{}, {"a": 3}]
    assert max(tried, key=merit) == {"a": 3, "b": 1}


def test_quick_settings_are_moved_at_once_and_taken_over_by_the_next_start() -> None:
    def merit(options: dict[str, Any]) -> float:
        return -abs(options["a"] - 3.0) + float(options.get("b", 0) == 1)

    steps = ascend([{"a": 1}, {"a": 1, "b": 1}], {"a": VALUES, "b": (0, 1)}, {"b": 0}, quick=("a",))
    tried = climbed(steps, merit)
    assert tried[:4] == [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}]
    assert tried[4] == {"a": 3, "b": 1}
    assert sum(one.get("b", 0) == 0 for one in tried) == 5  # b = 0 again once, beside the best a


def test_climbing_paths_go_up_and_down_from_the_starting_value() -> None:
    assert paths_from(VALUES, 2) == [(3, 4, 5), (1,)]
    assert paths_from(VALUES, 5) == [(), (4, 3, 2, 1)]
    assert paths_from(VALUES, 2.5) == [(3, 4, 5), (2, 1)]
