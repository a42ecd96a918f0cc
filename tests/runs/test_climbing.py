from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from ltocf.runs.climbing import Place, climb, paths_from

VALUES = (1, 2, 3, 4, 5)


@pytest.mark.parametrize("start", VALUES)
@pytest.mark.parametrize("peak", VALUES)
def test_a_climb_ends_at_the_only_peak_one_step_beyond_it(start: int, peak: int) -> None:
    tried = []

    def along(path: Sequence[int]) -> Iterator[Place]:
        for value in path:
            tried.append(value)
            yield Place(-abs(value - peak), {"value": value})

    here = Place(-abs(start - peak), {"value": start})
    found = climb(here, [along(path) for path in paths_from(VALUES, start)])
    assert found.options == {"value": peak}
    assert all(abs(value - peak) <= abs(start - peak) + 1 for value in tried)
    assert len(tried) == len(set(tried))


def test_paths_lead_up_and_down_from_where_one_stands() -> None:
    assert paths_from(VALUES, 2) == [(3, 4, 5), (1,)]
    assert paths_from(VALUES, 5) == [(), (4, 3, 2, 1)]
