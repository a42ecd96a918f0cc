"""Conditions on items, as people write them: category=tea, price<20, tags~vegan, available, !new.

    condition    [!] ATTRIBUTE [OPERATOR VALUE [| VALUE ...]]
    operator     =  !=  <  <=  >  >=  ~ (contains; of tags: has)  !~

Nothing in it is executed: an attribute is looked up, a value is read by the attribute's kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.attributes import Kind, as_flag, as_moment
from ltocf.data.catalogue import Catalogue
from ltocf.data.dataset import Dataset
from ltocf.data.times import clock_now, first_touched, present
from ltocf.errors import ConfigError

Mask = NDArray[np.bool_]

FORM = re.compile(r"^\s*(!?)\s*([^=<>~!|:]+?)\s*(?:(!=|<=|>=|=|<|>|!~|~)\s*(.*?))?\s*$", re.DOTALL)
HELP = "write conditions such as category=tea, price<20, tags~vegan, available or !new"
NEW_DAYS = 30  # an item is 'new' for this long after its arrival
ORDERED = {
    "<": pl.Series.__lt__,
    "<=": pl.Series.__le__,
    ">": pl.Series.__gt__,
    ">=": pl.Series.__ge__,
}


@dataclass(frozen=True)
class Shelf:
    """What conditions are evaluated on: the catalogue, and the current time."""

    catalogue: Catalogue
    now: datetime
    # When each item was first touched, which counts as its arrival if no attribute gives that.
    # NaT: never.
    first_touched: Callable[[], NDArray[np.datetime64] | None] = lambda: None

    @cached_property
    def _expires(self) -> bool:
        return self.catalogue.role("expiry") is not None

    @cached_property
    def minute(self) -> datetime:
        return self.now.replace(second=0, microsecond=0)

    @property
    def clock(self) -> datetime | None:
        """The current time, to the second, if items can expire."""
        return clock_now().replace(microsecond=0) if self._expires else None

    @property
    def today(self) -> datetime:
        """The day that expiry dates are compared with: the present, even if the log ended long
        ago."""
        return max(self.now, self.clock or self.now)

    def arrivals(self) -> NDArray[np.datetime64]:
        """When each item arrived, NaT if unknown. (n_items,)"""
        role = self.catalogue.role("arrival")
        if role is not None and self.catalogue.kinds[role] == "time":
            return self.catalogue.table[role].to_numpy().astype("datetime64[us]")
        touched = self.first_touched()
        if touched is None:
            raise ConfigError(
                "it is unknown which items are new; give them an attribute 'added' with a date, or "
                "give a log with times"
            )
        missing = np.full(len(self.catalogue) - len(touched), "NaT", "datetime64[us]")
        return np.concatenate([touched, missing])


@dataclass(frozen=True)
class Condition:
    """One condition; `operator` is '' if it consists of the attribute alone."""

    attribute: str
    operator: str = ""
    values: tuple[str, ...] = ()
    negated: bool = False

    @classmethod
    def parse(cls, text: str) -> Condition:
        found = FORM.match(text)
        if found is None:
            raise ConfigError(f"cannot read the condition {text!r}; {HELP}")
        negation, attribute, operator, value = found.groups()
        values = tuple(part.strip() for part in (value or "").split("|")) if operator else ()
        if operator and not all(values):
            raise ConfigError(f"the condition {text!r} has no value; {HELP}")
        negated = bool(negation) != bool(operator and operator.startswith("!"))
        return cls(attribute, (operator or "").lstrip("!"), values, negated)

    def __str__(self) -> str:
        sign = "!" if self.negated else ""
        if not self.operator:
            return f"{sign}{self.attribute}"
        return f"{self.attribute}{sign}{self.operator}{'|'.join(self.values)}"

    def holds(self, shelf: Shelf) -> Mask:
        """Which items meet the condition; an item without the attribute has none of its values."""
        held = self._alone(shelf) if not self.operator else self._compared(shelf.catalogue)
        return ~held if self.negated else held

    def _alone(self, shelf: Shelf) -> Mask:
        catalogue = shelf.catalogue
        own = self.attribute in catalogue.table.columns
        if self.attribute == "available":
            return catalogue.available(shelf.today)
        if self.attribute == "new" and not (own and catalogue.kinds["new"] == "flag"):
            since = np.datetime64(shelf.now.replace(tzinfo=None) - timedelta(days=NEW_DAYS), "us")
            return np.asarray(shelf.arrivals() >= since, dtype=bool)
        name = catalogue.column(self.attribute)
        if catalogue.kinds[name] == "flag":
            return catalogue.table[name].fill_null(False).to_numpy()
        raise ConfigError(
            f"{name!r} is a {catalogue.kinds[name]}, so the condition needs a value: {HELP}"
        )

    def _compared(self, catalogue: Catalogue) -> Mask:
        name = catalogue.column(self.attribute)
        column, kind = catalogue.table[name], catalogue.kinds[name]
        test = _test(kind, self.operator)
        if test is None:
            raise ConfigError(
                f"the condition {str(self)!r}: {name!r} is a {kind}, which {self.operator!r} "
                f"cannot compare; {HELP}"
            )
        held = np.zeros(len(catalogue), dtype=bool)
        for value in self.values:
            held |= test(column, self._value(kind, value)).fill_null(False).to_numpy()
        return held

    def _value(self, kind: Kind, text: str) -> Any:
        read: dict[Kind, Callable[[str], Any]] = {
            "number": float,
            "time": as_moment,
            "flag": as_flag,
        }
        try:
            return read.get(kind, str.lower)(text)
        except ValueError:
            raise ConfigError(f"the condition {str(self)!r}: {text!r} is not a {kind}") from None


def _test(kind: Kind, operator: str) -> Callable[[pl.Series, Any], pl.Series] | None:
    """The comparison for this kind of attribute, or None if there is none."""
    if kind in ("number", "time"):
        return pl.Series.__eq__ if operator == "=" else ORDERED.get(operator)
    if kind == "flag":
        return pl.Series.__eq__ if operator == "=" else None
    if operator in ORDERED:
        return None
    if kind == "tags":
        return _has_tag
    return _is_text if operator == "=" else _contains_text


def _has_tag(column: pl.Series, tag: str) -> pl.Series:
    return column.list.eval(pl.element().str.to_lowercase()).list.contains(tag)


def _is_text(column: pl.Series, text: str) -> pl.Series:
    return column.str.to_lowercase() == text


def _contains_text(column: pl.Series, text: str) -> pl.Series:
    return column.str.to_lowercase().str.contains(text, literal=True)


def shelf_of(dataset: Dataset, now: datetime | None = None) -> Shelf:
    """The catalogue of a data set at `now`, by default the time of its latest touch or arrival."""
    known, seen = dataset.catalogue.memo, dataset.split.seen
    shelf: Shelf | None = known.get("shelf")
    if shelf is None:
        latest = max(present(seen), _latest_arrival(dataset.catalogue, clock_now()))
        shelf = known["shelf"] = Shelf(
            dataset.catalogue, latest, cache(lambda: first_touched(seen))
        )
    return shelf if now is None else replace(shelf, now=now)


def _latest_arrival(catalogue: Catalogue, until: datetime) -> datetime:
    """The latest arrival of an item until `until`; datetime.min if there is none."""
    role = catalogue.role("arrival")
    if role is None or catalogue.kinds[role] != "time":
        return datetime.min
    arrivals = catalogue.table[role]
    found = arrivals.filter(arrivals <= until).max()
    return found if isinstance(found, datetime) else datetime.min
