"""A synthetic town: people with tastes and homes, places with names, and who went where.

It is made from a seed in a second, so that the demo and the tests need no download. What made each
person choose is known, so that recommendations can be checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.sources.town_words import (
    ADJECTIVES,
    FIRST_NAMES,
    KINDS,
    LAST_NAMES,
    NEIGHBOURHOODS,
    NOUNS,
)
from ltocf.data.splits import split_pairs

YEAR_START, YEAR_SECONDS = 1_735_689_600, 365 * 86_400  # 2025, in seconds since 1970


@dataclass(frozen=True, eq=False)
class Town:
    """The data set, and the truth behind it as indices into KINDS and NEIGHBOURHOODS.

    Row r of an array of people or places is user or item r of the data set.
    """

    dataset: Dataset
    person_tastes: NDArray[np.int64]  # (people, 2) the favourite kind and the second one
    person_homes: NDArray[np.int64]  # (people,)
    place_kinds: NDArray[np.int64]  # (places,)
    place_homes: NDArray[np.int64]  # (places,)

    def log(self) -> pl.DataFrame:
        """All visits as a raw log: columns person, place and time (in seconds since 1970)."""
        visits = self.dataset.split.train.union(self.dataset.split.test)
        return pl.DataFrame(
            {
                "person": visits.user_ids.ids.gather(visits.users),
                "place": visits.item_ids.ids.gather(visits.items),
                "time": visits.timestamps,
            }
        ).sort("time", "person", "place")


def make_town(people: int = 2000, places: int = 1500, seed: int = 0) -> Town:
    """People choose places by taste, distance and renown, with some chance; the same for a seed."""
    random = np.random.default_rng(seed)
    tastes = random.random((people, len(KINDS))).argsort(axis=1)[:, :2]
    person_homes = random.integers(len(NEIGHBOURHOODS), size=people)
    place_kinds = random.integers(len(KINDS), size=places)
    place_homes = random.integers(len(NEIGHBOURHOODS), size=places)
    appeal = _appeal(random, tastes, person_homes, place_kinds, place_homes)
    users, items = _visits(random, appeal)
    place_names = _place_names(random, place_kinds)
    interactions = Interactions.build(
        users,
        items,
        IdMap([_slug(name) for name in _person_names(random, people)]),
        IdMap([_slug(name) for name in place_names]),
        YEAR_START + random.integers(YEAR_SECONDS, size=len(users)),
    )
    display = pl.DataFrame(
        {
            "name": place_names,
            "kind": np.array(list(KINDS))[place_kinds],
            "neighbourhood": np.array(NEIGHBOURHOODS)[place_homes],
        }
    )
    origin = {"source": "town", "options": {"people": people, "places": places, "seed": seed}}
    dataset = Dataset("town", split_pairs(interactions, seed=seed), display, origin)
    return Town(dataset, tastes, person_homes, place_kinds, place_homes)


def _appeal(
    random: np.random.Generator,
    tastes: NDArray[np.int64],
    person_homes: NDArray[np.int64],
    place_kinds: NDArray[np.int64],
    place_homes: NDArray[np.int64],
) -> NDArray[np.float64]:
    """How likely each person is to go to each place, as a logarithm. (people, places)"""
    renown = -0.7 * np.log(1 + random.permutation(len(place_kinds)))  # power law
    favourite = tastes[:, :1] == place_kinds
    second = tastes[:, 1:] == place_kinds
    apart = np.abs(person_homes[:, None] - place_homes)
    steps = np.minimum(apart, len(NEIGHBOURHOODS) - apart)  # the neighbourhoods lie on a ring
    appeal: NDArray[np.float64] = renown + 3.0 * favourite + 2.2 * second - 0.9 * steps
    return appeal


def _visits(
    random: np.random.Generator, appeal: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each person's draw without replacement, in proportion to exp(appeal)."""
    people, places = appeal.shape
    wanted = np.exp(random.normal(3.0, 0.6, size=people))
    counts = np.clip(wanted, 5, max(places // 4, 1)).astype(np.int64)
    # The largest of log-weights plus Gumbel noise are such a draw.
    order = np.argsort(-(appeal + random.gumbel(size=appeal.shape)).astype(np.float32), axis=1)
    chosen = np.arange(places) < counts[:, None]
    return np.nonzero(chosen)[0], order[chosen]


def _person_names(random: np.random.Generator, people: int) -> list[str]:
    names = [f"{first} {last}" for first, last in product(FIRST_NAMES, LAST_NAMES)]
    return _distinct([names[i] for i in _shuffled(random, len(names), people)])


def _place_names(random: np.random.Generator, place_kinds: NDArray[np.int64]) -> list[str]:
    names = [f"{adjective} {noun}" for adjective, noun in product(ADJECTIVES, NOUNS)]
    sorts = list(KINDS.values())
    sort = random.integers(3, size=len(place_kinds))
    drawn = _shuffled(random, len(names), len(place_kinds))
    return _distinct(
        [
            f"{names[i]} {sorts[kind][which]}"
            for i, kind, which in zip(drawn, place_kinds, sort, strict=True)
        ]
    )


def _shuffled(random: np.random.Generator, n: int, wanted: int) -> NDArray[np.int64]:
    """`wanted` numbers below n; none is repeated before all were used."""
    rounds = -(-wanted // n)
    return np.concatenate([random.permutation(n) for _ in range(rounds)])[:wanted]


def _distinct(names: list[str]) -> list[str]:
    """The second one with the same name becomes 'name 2', and so on."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return distinct


def _slug(name: str) -> str:
    return name.lower().replace("é", "e").replace(" ", "-")
