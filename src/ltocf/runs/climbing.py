"""Search settings one at a time, from where one stands uphill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Options = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Settings, and what validation thinks of them."""

    merit: float
    options: Options


Somewhere = TypeVar("Somewhere", bound=Place)


def climb(start: Somewhere, paths: Iterable[Iterable[Somewhere]]) -> Somewhere:
    """As far as the first path rises that rises at all; `start` where none does. Paths may be lazy:
    nothing beyond the first step down is looked at."""
    for path in paths:
        highest = start
        for place in path:
            if place.merit <= highest.merit:
                break
            highest = place
        if highest is not start:
            return highest
    return start


def paths_from(values: Sequence[Any], start: Any) -> list[Sequence[Any]]:
    """Up and down: [1, 2, 3, 4] from 2 is [3, 4] and [1]."""
    place = values.index(start)
    return [values[place + 1 :], values[:place][::-1]]
