"""What may be listed and in what order: one small form for the shell, Python and HTTP.

where      conditions that every item of a list meets
exclude    items that are never listed
boost      CONDITION:FACTOR, by which the scores of such items are multiplied
at_most    N:ATTRIBUTE, so many items of a list may share a value of it
pin        items that come first, where they may be listed at all
diversity  from 0 (by score alone) to 1 (as unlike as possible)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltocf.data.ids import Id
from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.recommend.rules.conditions import Condition, Mask, Shelf

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BY = ("attributes", "vectors")
MEMORY = 64  # rule sets whose arrays a catalogue caches


class Boost(NamedTuple):
    """The scores of items that meet the condition are multiplied by `factor`."""

    condition: Condition
    factor: float

    @classmethod
    def parse(cls, text: str) -> Boost:
        condition, colon, factor = text.rpartition(":")
        try:
            value = float(factor)
        except ValueError:
            value = -1.0
        if not colon or not 0 < value < float("inf"):
            raise ConfigError(
                f"cannot read the boost {text!r}; write CONDITION:FACTOR such as new:1.2, with a "
                "factor above 0"
            )
        return cls(Condition.parse(condition), value)

    def __str__(self) -> str:
        return f"{self.condition}:{self.factor:g}"


class AtMost(NamedTuple):
    """How many items of a list may share a value of an attribute."""

    limit: int
    attribute: str

    @classmethod
    def parse(cls, text: str) -> AtMost:
        count, colon, attribute = text.partition(":")
        if not (colon and attribute.strip() and count.strip().isdigit() and int(count)):
            raise ConfigError(f"cannot read {text!r}; write N:ATTRIBUTE such as 2:category")
        return cls(int(count), attribute.strip())


@dataclass(frozen=True)
class Rules:
    """Rules as they were written; `on` evaluates them on a catalogue."""

    where: tuple[Condition, ...] = ()
    exclude: tuple[Id, ...] = ()
    boost: tuple[Boost, ...] = ()
    at_most: tuple[AtMost, ...] = ()
    pin: tuple[Id, ...] = ()
    diversity: float = 0.0
    by: str = "attributes"  # or vectors: what makes two items alike

    @classmethod
    def parse(
        cls,
        where: str | Iterable[str] = (),
        *,
        exclude: Iterable[Id] = (),
        boost: str | Iterable[str] = (),
        at_most: str | Iterable[str] = (),
        pin: Iterable[Id] = (),
        diversity: float = 0.0,
        by: str = "attributes",
    ) -> Rules:
        """Rules from texts. One that cannot be read is a ConfigError that says how to write it."""
        if not 0 <= diversity <= 1:
            raise ConfigError(f"diversity = {diversity!r}: must lie between 0 and 1")
        if by not in BY:
            raise ConfigError(f"alike_by = {by!r} is unknown; choose one of: {', '.join(BY)}")
        return cls(
            tuple(map(Condition.parse, _texts(where))),
            tuple(exclude),
            tuple(map(Boost.parse, _texts(boost))),
            tuple(map(AtMost.parse, _texts(at_most))),
            tuple(dict.fromkeys(pin)),
            float(diversity),
            by,
        )

    @cached_property
    def _digest(self) -> int:
        parts = (self.where, self.exclude, self.boost, self.at_most, self.pin)
        return hash((*parts, self.diversity, self.by))

    def __hash__(self) -> int:  # must be fast, since rules are looked up for every list
        return self._digest

    @property
    def reorder(self) -> bool:
        """Whether a list needs more than ranking items by score: at most, pins or diversity."""
        return bool(self.at_most or self.pin or self.diversity)

    def on(self, shelf: Shelf) -> ItemRules:
        """These rules as arrays over the items; the catalogue remembers them."""
        key = (self, shelf.minute, shelf.clock)
        known: dict[object, ItemRules] = shelf.catalogue.memo.setdefault("rules", {})
        found = known.get(key)  # threads share the memory, and any of them may clear it
        if found is None:
            if len(known) >= MEMORY:
                known.clear()
            found = known[key] = self._on(shelf)
        return found

    def _on(self, shelf: Shelf) -> ItemRules:
        catalogue = shelf.catalogue
        if self.diversity and self.by == "attributes" and not catalogue.attributes.nnz:
            raise ConfigError(
                "diversity by attributes needs categories or tags of the items (--items FILE); "
                "or ask for it by vectors"
            )
        allowed: Mask = np.ones(len(catalogue), dtype=bool)
        if not any(condition.attribute == "available" for condition in self.where):
            allowed &= catalogue.available(shelf.today)
        for condition in self.where:
            allowed &= condition.holds(shelf)
        rows = catalogue.ids.find(self.exclude)
        allowed[rows[rows >= 0]] = False
        boosted = tuple((str(boost), boost.condition.holds(shelf)) for boost in self.boost)
        factors = np.ones(len(catalogue), dtype=np.float32)
        for boost, (_, held) in zip(self.boost, boosted, strict=True):
            factors[held] *= boost.factor
        pins = catalogue.ids.find(self.pin)
        return ItemRules(
            self,
            None if allowed.all() else ~allowed,
            factors if self.boost else None,
            tuple((rule.limit, catalogue.tags([rule.attribute]).matrix) for rule in self.at_most),
            pins[pins >= 0],
            boosted,
        )


@dataclass(frozen=True, eq=False)
class ItemRules:
    """Rules over the rows of items."""

    rules: Rules
    blocked: Mask | None  # (n_items,) items that may not be listed
    factors: NDArray[np.float32] | None  # (n_items,) that scores are multiplied by
    groups: tuple[tuple[int, csr_array], ...]  # at most so many of each column, items by values
    pins: Rows
    boosted: tuple[tuple[str, Mask], ...]  # each boost, and of which items it holds

    @cached_property
    def penalty(self) -> NDArray[np.float32] | None:
        """-inf for blocked items and 0 for the others, to be added to scores. (n_items,)"""
        if self.blocked is None:
            return None
        return np.where(self.blocked, -np.inf, 0).astype(np.float32)

    @cached_property
    def n_blocked(self) -> int:
        return 0 if self.blocked is None else int(np.count_nonzero(self.blocked))

    @cached_property
    def boosted_items(self) -> Rows:
        """Those whose scores are multiplied by something."""
        assert self.factors is not None
        return np.flatnonzero(self.factors != 1).astype(np.int32)

    def notes(self, item: int) -> list[str]:
        """The boosts that raised or lowered an item."""
        return [text for text, held in self.boosted if held[item]]


def _texts(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
