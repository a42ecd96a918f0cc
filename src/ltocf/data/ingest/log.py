"""A log as numbered users and items, read once, some rows at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from ltocf.data.ingest import values
from ltocf.data.ingest.codes import Codes
from ltocf.data.ingest.columns import LogColumns, choose_columns, guess_column, require
from ltocf.data.ingest.readers import EXTRA, LogSource, Table, open_log, reading
from ltocf.data.ingest.roles import NAMES, OPTIONAL
from ltocf.data.ingest.text_form import TextOptions
from ltocf.data.pair_columns import Arrays
from ltocf.data.pair_store import TRAIN, UNLIKED, Repeats
from ltocf.errors import ConfigError, DataError

BATCH_ROWS = 1_000_000
REASONS = 3  # of the rows that were skipped, so many are told


@dataclass(frozen=True)
class Reading:
    """How a log is read: its columns by name, number (from 1) or guess, and its form."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    rating: str | None = None
    weight: str | None = None  # how strong an interaction is: plays, a quantity, a rating
    repeats: Repeats | None = None  # how the weights of a repeated pair become one; none: sum
    threshold: float | None = None  # a lower rating, or none, is no like
    separator: str | None = None
    header: bool | None = None
    encoding: str | None = None
    skip_bad: bool = False  # pass over rows that cannot be read, instead of failing

    @property
    def weighted(self) -> bool:
        """Repeats without a column of weights: each row weighs 1."""
        return self.weight is not None or self.repeats is not None

    def check(self) -> None:
        self.text_options().check()
        if self.repeats not in (None, *get_args(Repeats)):
            choices = ", ".join(get_args(Repeats))
            raise ConfigError(f"unknown repeats {self.repeats!r}; choose one of: {choices}")
        if self.repeats == "max" and self.weight is None:
            raise ConfigError(
                "repeats 'max' needs a column of weights; name it with weight= (--weight)"
            )

    def text_options(self) -> TextOptions:
        return TextOptions(self.separator, self.header, self.encoding)


@dataclass
class Log:
    """An opened log. The counts are those of what `rows` has passed so far.

    Codes are given in the order in which polars' threads meet the ids: use them through `ranked`.
    Two logs that share `codes`, such as train and test, number their ids together.
    """

    tables: list[Table]
    columns: LogColumns
    how: Reading
    items: Path | None = None  # the table of items that came with the log
    codes: dict[str, Codes] = field(default_factory=lambda: {"user": Codes(), "item": Codes()})
    count: int = 0
    below_threshold: int = 0
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)

    @classmethod
    def open(
        cls,
        source: LogSource,
        how: Reading | None = None,
        *,
        like: Log | None = None,
        usual: Mapping[str, str] | None = None,
    ) -> Log:
        """Find the columns; nothing is read yet but headers and a sample. `like` is a log whose
        codes this one shares; `usual` names of columns come before a guess."""
        how = how or Reading()
        how.check()
        given = {role: getattr(how, role) for role in NAMES}
        opened = open_log(
            source, how.text_options(), keep_extra=how.skip_bad, columns=given.values()
        )
        if how.threshold is not None and given["rating"] is None:
            given["rating"] = "?"
        columns = choose_columns(opened.tables[0], given, usual or {})
        for table in opened.tables:
            require(table, columns)
        log = cls(opened.tables, columns, how, opened.items)
        if like is not None:
            log.codes = like.codes
        for role, codes in log.codes.items():
            # Text files have no types, so what looks like integers is; else the type decides.
            types = (t.schema[getattr(columns, role)] for t in log.tables if t.typed)
            codes.typed_as_integers &= all(
                type_.is_integer() or type_.is_float() for type_ in types
            )
        return log

    @property
    def label(self) -> str:
        more = f" and {len(self.tables) - 1} more" if len(self.tables) > 1 else ""
        return self.tables[0].label + more

    def notes(self) -> list[str]:
        """What was found out about the form, and which columns could count but do not."""
        notes = list(dict.fromkeys(note for table in self.tables for note in table.notes))
        used = {self.columns.user, self.columns.item, self.columns.time}
        used |= {self.columns.rating, self.columns.weight}
        for role in OPTIONAL:
            name = guess_column(self.tables[0], role)
            if name is not None and name not in used:
                used.add(name)
                notes.append(HINTS[role].format(name=name))
        return notes

    def known_rows(self) -> int | None:
        """How many rows there are, where that can be told without reading them."""
        if not all(table.typed for table in self.tables):
            return None
        with reading(self.label):
            return sum(int(table.frame.select(pl.len()).collect().item()) for table in self.tables)

    def rows(self, part: int = TRAIN) -> Iterator[Arrays]:
        """All rows as 'user' and 'item' codes, 'part', and 'time' and 'weight' if there are any.

        The part is `part`, or UNLIKED where the rating is too low. A missing id or unreadable value
        is a DataError, or with `skip_bad` counted.
        """
        for table in self.tables:
            yield from self._rows_of(table, part)
        if not self.count:
            raise DataError(f"{self.label}: holds no row below its header")
        if self.skipped == self.count:
            raise DataError(f"{self.label}: no row can be read; the first: {self.reasons[0]}")
        if self.below_threshold == self.count - self.skipped:
            raise DataError(
                f"{self.label}: no rating in column {self.columns.rating!r} reaches "
                f"the threshold {self.how.threshold}; lower it"
            )

    def _rows_of(self, table: Table, part: int) -> Iterator[Arrays]:
        before = self.count
        with reading(table.label):
            query = table.frame.select(self._expressions(table))
            for rows in query.collect_batches(chunk_size=BATCH_ROWS, engine="streaming"):
                good = self._without_bad(table, rows, self.count - before)
                self.count += rows.height
                self.skipped += rows.height - good.height
                yield self._arrays(good, part)

    def _arrays(self, rows: pl.DataFrame, part: int) -> Arrays:
        found: Arrays = {role: codes.note(rows[role]) for role, codes in self.codes.items()}
        found["part"] = np.full(rows.height, part, dtype=np.uint8)
        if "rating" in rows.columns:
            disliked = ~rows["rating"].to_numpy()
            found["part"][disliked] = UNLIKED
            self.below_threshold += int(np.count_nonzero(disliked))
        if "time" in rows.columns:
            found["time"] = rows["time"].to_numpy()
        if "weight" in rows.columns:
            found["weight"] = rows["weight"].to_numpy()
        elif self.how.weighted:
            found["weight"] = np.ones(rows.height, dtype=np.float32)
        return found

    def _expressions(self, table: Table) -> list[pl.Expr]:
        """A column for each role, 'rating' as whether it suffices; null where a value is bad."""
        columns = self.columns
        found = {
            role: values.id_expression(table, getattr(columns, role))
            .cast(codes.dtype)
            .to_physical()
            for role, codes in self.codes.items()
        }
        if columns.time is not None:
            found["time"] = values.time_expression(table, columns.time)
        if columns.rating is not None and self.how.threshold is not None:
            found["rating"] = values.reaches_expression(table, columns.rating, self.how.threshold)
        if columns.weight is not None:
            found["weight"] = values.weight_expression(table, columns.weight)
        if EXTRA in table.schema:
            found["extra"] = values.extra_expression()
        return [expression.alias(role) for role, expression in found.items()]

    def _without_bad(self, table: Table, rows: pl.DataFrame, before: int) -> pl.DataFrame:
        """The rows without nulls; the first null is a DataError unless bad rows are skipped."""
        if not any(column.null_count() for column in rows.get_columns()):
            return rows
        bad = rows.select(pl.any_horizontal(pl.all().is_null())).to_series()
        for place in bad.arg_true().head(REASONS - len(self.reasons)):
            role = next(name for name in rows.columns if rows[name][place] is None)
            reason = self._complaint(table, before + place, role)
            if not self.how.skip_bad:
                raise DataError(
                    f"{table.label}: {reason}; skip_bad=True (--skip-bad) passes over such rows"
                )
            self.reasons.append(f"{table.label}: {reason}")
        return rows.filter(~bad)

    def _complaint(self, table: Table, row: int, role: str) -> str:
        name = EXTRA if role == "extra" else getattr(self.columns, role)
        value = table.frame.select(name).slice(row, 1).collect().item()
        if role == "extra":
            return f"row {row + 1:,}: more fields than columns, such as {value!r}"[:120]
        return f"row {row + 1:,}: {_what_is_wrong(role, value)} in column {name!r}"


HINTS = {
    "rating": "column {name!r}: every rating counts as a like; "
    "threshold=4 (--threshold 4) asks for 4 or more",
    "weight": "column {name!r} is not used; weight= (--weight {name}) lets it count as strength",
}


def _what_is_wrong(role: str, value: object) -> str:
    shown = repr(value)[:60]
    if role in ("user", "item"):
        missing = value is None or value == "" or value != value
        return f"no {role} id" if missing else f"{role} id {shown} is not a whole number"
    if value is None:
        return f"no {role}"
    if role == "rating":
        return f"{shown} is not a number"
    if role == "weight":
        return f"{shown} is not a number above 0"
    return f"time {shown} is not written like the others"
