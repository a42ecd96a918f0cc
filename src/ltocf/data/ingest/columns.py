"""Which column holds what: as the caller names it, or guessed and reported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ltocf.data.ingest.readers import EXTRA, Table, reading
from ltocf.data.ingest.roles import NAMES, OPTIONAL, QUANTITIES
from ltocf.data.ingest.text_form import plain
from ltocf.errors import DataError

SAMPLE_ROWS = 1000
DATE = r"^\d{1,4}[-./]\d"


@dataclass(frozen=True)
class LogColumns:
    """The names of a log's columns. `guessed` lists the roles whose columns were guessed."""

    user: str
    item: str
    time: str | None = None
    rating: str | None = None
    weight: str | None = None
    kind: str | None = None
    quantity: str | None = None  # not used as a weight; a row below 0 is a return
    guessed: tuple[str, ...] = ()

    def names(self) -> dict[str, str]:
        """The column of each role that has one."""
        found = {role: getattr(self, role) for role in (*NAMES, "quantity")}
        return {role: name for role, name in found.items() if name is not None}

    def describe(self) -> str:
        return ", ".join(
            f"{role} = {name!r}{' (guessed)' if role in self.guessed else ''}"
            for role, name in self.names().items()
            if role != "quantity"  # it is only reported if there are returns
        )


def choose_columns(
    table: Table, given: Mapping[str, str | None], usual: Mapping[str, str]
) -> LogColumns:
    """The given names (or numbers, from 1), which must exist; else the usual ones, if they do; and
    for `user`, `item` and `time` else a guess. `rating` is guessed only if it is given as '?'.
    """
    chosen: dict[str, str] = {}
    for role in NAMES:
        name = given.get(role)
        if name is not None and name != "?":
            chosen[role] = _existing(table, role, name)
        elif usual.get(role) in table.schema:
            chosen[role] = usual[role]
        elif (role not in OPTIONAL or name == "?") and (guess := _guess(table, role)):
            chosen[role] = guess
        elif role in ("user", "item") or name == "?":
            raise DataError(
                f"{table.label}: cannot guess the {role} column; name it with {role}= (--{role}). "
                f"The columns are: {_listing(table)}"
                + (
                    ""
                    if table.typed
                    else "; if they are a row of data, pass header=False (--no-header)"
                )
            )
    known = {role for role in chosen if chosen[role] == usual.get(role)}
    guessed = tuple(role for role in chosen if given.get(role) in (None, "?") and role not in known)
    if len(set(chosen.values())) < len(chosen):
        raise DataError(f"{table.label}: one column has two roles: {chosen}; name them apart")
    quantity = None if "weight" in chosen else _quantity(table, chosen.values())
    return LogColumns(**chosen, quantity=quantity, guessed=guessed)


def _quantity(table: Table, used: Collection[str]) -> str | None:
    """A column of quantities, which are below 0 where something was returned."""
    for name, dtype in table.schema.items():
        if plain(name) in QUANTITIES and name not in used:
            return name if dtype.is_numeric() or dtype == pl.String else None
    return None


def _guess(table: Table, role: str) -> str | None:
    """Guess the rating column; a threshold may also be on plays or counts."""
    return guess_column(table, role) or (
        guess_column(table, "weight") if role == "rating" else None
    )


def guess_column(table: Table, role: str) -> str | None:
    """The column with a usual name for this role; by position where columns have no names."""
    names = [name for name in table.schema.names() if name != EXTRA]
    called = {plain(name): name for name in reversed(names)}
    found = next((called[word] for word in NAMES[role].split() if word in called), None)
    if found is None and not table.header and names[0] == "1":
        return _guess_by_place(table, role, names)
    return found


def _guess_by_place(table: Table, role: str, names: Sequence[str]) -> str | None:
    """Without a header: user, item, then rating and time by what the columns hold, as is usual."""
    if role in ("user", "item"):
        place = ("user", "item").index(role)
        return names[place] if place < len(names) else None
    with reading(table.label):
        sample = table.frame.head(SAMPLE_ROWS).collect()
    for name in names[2:]:
        values = sample[name].drop_nulls()
        numbers = values.cast(pl.Float64, strict=False).drop_nulls()
        # Seconds since 1970 have nine digits or more; ratings and counts rarely have six.
        is_rating = bool(len(numbers)) and bool((numbers.abs() < 1e6).all())
        is_time = bool((numbers >= 1e8).all() if len(numbers) else values.str.contains(DATE).all())
        if (role == "rating" and is_rating) or (role == "time" and is_time):
            return name
    return None


def choose_item_column(table: Table, name: str) -> str:
    """The column of ids in a table of items: called `name` as in the log, or 'id', or a guess."""
    names = table.schema.names()
    first = None if table.header else names[0]
    for candidate in (name, "id", guess_column(table, "item") if table.header else None, first):
        if candidate in names:
            return candidate
    raise DataError(f"{table.label}: no column {name!r} with item ids; it has: {_listing(table)}")


def require(table: Table, columns: LogColumns) -> None:
    """A DataError unless the table has all the columns, as every table of a folder must."""
    for role, name in columns.names().items():
        _existing(table, role, name)


def _existing(table: Table, role: str, name: str) -> str:
    names = table.schema.names()
    if name in names:
        return name
    # A header such as 'user, item' has a column called ' item'.
    if found := next((other for other in names if other.strip() == name.strip()), None):
        return found
    if name.isdigit() and 1 <= int(name) <= len(names):
        return names[int(name) - 1]
    raise DataError(
        f"{table.label}: no column {name!r} for the {role}; the columns are: {_listing(table)}"
    )


def _listing(table: Table) -> str:
    names = [name for name in table.schema.names() if name != EXTRA]
    shown = ", ".join(repr(name[:60]) for name in names[:20])
    return f"{shown}, ..." if len(names) > 20 else shown
