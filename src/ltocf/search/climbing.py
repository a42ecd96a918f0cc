"""Coordinate ascent: improve settings one at a time."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Mapping, Sequence
from typing import Any

Options = dict[str, Any]


def ascend(
    starts: Sequence[Options], choices: Mapping[str, Sequence[Any]], usual: Mapping[str, Any]
) -> Generator[Options, float, None]:
    """Yields settings to try, beginning with `starts`; the caller sends how good each were.

    From the best start on, one setting after another is moved as long as that gains; it ends when
    no move gains. `usual` has the values of settings that a start leaves out.
    """
    best, top = starts[0], -math.inf
    for start in starts:
        merit = yield start
        if merit > top:
            best, top = start, merit
    risen = True
    while risen:
        risen = False
        for key, values in choices.items():
            for path in paths_from(values, best.get(key, usual.get(key))):
                before = top
                for value in path:
                    tried = best | {key: value}
                    merit = yield tried
                    if merit <= top:
                        break
                    best, top, risen = tried, merit, True
                if top > before:
                    break


def paths_from(values: Sequence[Any], start: Any) -> list[Sequence[Any]]:
    """Up and down: (1, 2, 3, 4) from 2 is (3, 4) and (1,); numbers may lie in between."""
    if start in values:
        place = values.index(start)
        return [values[place + 1 :], values[:place][::-1]]
    return [values[bisect_right(values, start) :], values[: bisect_left(values, start)][::-1]]
