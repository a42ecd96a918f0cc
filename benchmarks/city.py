"""A city of any size with planted tastes, made in seconds per million: what scale is measured on.

Places come in circles of a hundred, which lie on a ring. Each person has a favourite circle, a
second one, some liking for the circles next to the favourite, and now and then goes where everybody
goes. A circle is as large in a small city as in a large one, so that what there is to find, and how
hard it is, does not change with the size. Every choice is a hash: any thread draws the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import IdMap, Interactions, Rows
from ltocf.data.splits import Split
from ltocf.draws import half_bits, scrambled, shuffled, uniform
from ltocf.machine.threads import share_out

VISITS, CIRCLE = 50, 100  # of a person, at the mean; places in a circle
LEAST, MOST = 10, 400  # visits of a person
FAVOURITE, SECOND, NEAR = 0.5, 0.75, 0.9  # up to which share of the choices they are made so
TESTED = 0.1
RANGE = 1024  # people drawn by one thread at a time


@dataclass(frozen=True, eq=False)
class City:
    """The data set, and the truth behind it."""

    dataset: Dataset
    key: np.uint64

    def probabilities(self, people: Rows) -> Tensor:
        """How likely each person's next choice is to be each place. (len(people), n_items)"""
        train = self.dataset.split.train
        out = np.zeros((len(people), train.n_items), np.float32)
        _probabilities(self.key, people, _place_of_position(self.key, train.n_items), out)
        return torch.from_numpy(out)


def make_city(interactions: int, seed: int = 0) -> City:
    """A city with about so many visits, two thirds of its nodes people; a tenth of them tested."""
    people = max(interactions // VISITS, 4)
    places = max(people // 2 // CIRCLE, 4) * CIRCLE
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    counts = np.empty(people, np.int64)
    _count(key, counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    items, tested = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.bool_)
    place_of = _place_of_position(key, places)
    share_out(
        lambda first, last: _visit(key, first, last, starts, place_of, items, tested), people, RANGE
    )
    users = np.repeat(np.arange(people, dtype=np.int32), counts)
    whole = Interactions(users, items, IdMap.range(people), IdMap.range(places))
    train, test = whole.select(~tested), whole.select(tested)
    origin = {"source": "city", "options": {"interactions": interactions, "seed": seed}}
    return City(Dataset("city", Split(train, train.empty(), test), origin=origin), key)


def _place_of_position(key: np.uint64, places: int) -> Rows:
    """Rows of places are in no order of circles: a method has to find those."""
    place_of = np.empty(places, np.int32)
    _shuffle(key, place_of)
    return place_of


@njit(cache=True, nogil=True)
def _shuffle(key: Any, out: Any) -> None:
    half = half_bits(len(out))
    for position in range(len(out)):
        out[position] = shuffled(key, position, len(out), half)


@njit(cache=True, nogil=True)
def _fraction(key: Any, position: Any, draw: Any) -> Any:
    return (np.float64(scrambled(key, position, draw) >> np.uint64(11)) + 0.5) / 2.0**53


@njit(cache=True, nogil=True)
def _count(key: Any, counts: Any) -> None:
    for person in range(len(counts)):
        drawn = LEAST - (VISITS - LEAST) * np.log(_fraction(key, person, -1))
        counts[person] = min(MOST, CIRCLE // 2 + len(counts) // 4, np.int64(drawn))


@njit(cache=True, nogil=True)
def _choose(key: Any, person: Any, draw: Any, places: Any) -> Any:
    """The position of one choice: circle by circle, and in each the first places are liked most."""
    circles = places // CIRCLE
    favourite = uniform(key, person, -2, circles)
    how, which = _fraction(key, person, 3 * draw), _fraction(key, person, 3 * draw + 1)
    if how >= NEAR:  # everybody's places
        return np.int64(places * which**3)
    circle = favourite
    if how >= SECOND:
        circle = (favourite + 1 - 2 * uniform(key, person, 3 * draw + 2, 2)) % circles
    elif how >= FAVOURITE:
        circle = uniform(key, person, -3, circles)
    return circle * CIRCLE + np.int64(CIRCLE * which**2)


@njit(cache=True, nogil=True)
def _visit(
    key: Any, first: Any, last: Any, starts: Any, place_of: Any, items: Any, tested: Any
) -> None:
    """Each person's places, ascending, none twice; and which of them are tested."""
    for person in range(first, last):
        start, end = starts[person], starts[person + 1]
        stop, draw = start, 0
        while stop < end:
            place = place_of[_choose(key, person, draw, len(place_of))]
            draw += 1
            at = start + np.searchsorted(items[start:stop], place)
            if at < stop and items[at] == place:
                continue
            for move in range(stop, at, -1):
                items[move] = items[move - 1]
            items[at] = place
            stop += 1
        for visit in range(start, end):
            tested[visit] = visit > start and _fraction(key, visit, -4) < TESTED


@njit(cache=True, nogil=True)
def _probabilities(key: Any, people: Any, place_of: Any, out: Any) -> None:
    places = len(place_of)
    circles = places // CIRCLE
    for b in range(len(people)):
        favourite, second = (
            uniform(key, people[b], -2, circles),
            uniform(key, people[b], -3, circles),
        )
        for position in range(places):
            everybody = ((position + 1) / places) ** (1 / 3) - (position / places) ** (1 / 3)
            out[b, place_of[position]] += (1 - NEAR) * everybody
        for within in range(CIRCLE):
            share = np.sqrt((within + 1) / CIRCLE) - np.sqrt(within / CIRCLE)
            out[b, place_of[favourite * CIRCLE + within]] += FAVOURITE * share
            out[b, place_of[second * CIRCLE + within]] += (SECOND - FAVOURITE) * share
            for circle in ((favourite + 1) % circles, (favourite - 1) % circles):
                out[b, place_of[circle * CIRCLE + within]] += (NEAR - SECOND) / 2 * share
