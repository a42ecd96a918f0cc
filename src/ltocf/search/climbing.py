"""Coordinate ascent: improve settings one at a time."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any

Options = dict[str, Any]


Climb = Generator[Options, float, tuple[Options, float]]


def ascend(
    starts: Sequence[Options],
    choices: Mapping[str, Sequence[Any]],
    usual: Mapping[str, Any],
    quick: Collection[str] = (),
) -> Generator[Options, float, None]:
    """Yields settings to try, beginning with `starts`; the caller sends how good each were.

    From the best start on, one setting after another is moved as long as that gains; it ends when
    no move gains. `quick` are settings that cost next to nothing to change: they are moved as soon
    as a start is the best so far, and the starts after it take them over. `usual` has the values of
    settings that a start leaves out.
    """
    best, top = starts[0], -math.inf
    at_once = {key: values for key, values in choices.items() if key in quick}
    for place, start in enumerate(starts):
        taken = {key: best[key] for key in at_once if key in best} if place else {}
        merit = yield start | taken
        if merit > top:
            best, top = yield from _moved(start | taken, merit, at_once, usual)
    before = None
    while best is not before:
        before = best
        best, top = yield from _moved(best, top, choices, usual)


def _moved(
    best: Options, top: float, choices: Mapping[str, Sequence[Any]], usual: Mapping[str, Any]
) -> Climb:
    """Move one setting after another once; the best settings then, and how good they are."""
    for key, values in choices.items():
        for path in paths_from(values, best.get(key, usual.get(key))):
            before = top
            for value in path:
                tried = best | {key: value}
                merit = yield tried
                if merit <= top:
                    break
                best, top = tried, merit
            if top > before:
                break
    return best, top


def paths_from(values: Sequence[Any], start: Any) -> list[Sequence[Any]]:
    """Up and down: (1, 2, 3, 4) from 2 is (3, 4) and (1,); numbers may lie in between."""
    if start in values:
        place = values.index(start)
        return [values[place + 1 :], values[:place][::-1]]
    return [values[bisect_right(values, start) :], values[: bisect_left(values, start)][::-1]]
