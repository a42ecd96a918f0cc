"""A log as batches of numbered users and items, read once and in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.ingest.columns import (
    Columns,
    choose_columns,
    id_expression,
    reaches_expression,
    require,
    time_expression,
)
from ltocf.data.ingest.readers import LogSource, Part, open_parts, reading
from ltocf.data.interactions import IdMap, Interactions
from ltocf.errors import DataError

BATCH_ROWS = 1_000_000


class Batch(NamedTuple):
    """Some rows of a log, as codes that `Log.ranked` explains."""

    users: NDArray[np.uint32]  # (n,)
    items: NDArray[np.uint32]  # (n,)
    times: NDArray[np.int64] | None  # (n,)


class Codes:
    """Numbers that polars gives to ids as it meets them, the same ones while this object lives."""

    def __init__(self) -> None:
        self.dtype = pl.Categorical(pl.Categories.random())
        self._anchor = pl.Series(dtype=self.dtype)  # unused categories are forgotten
        self._end = 0

    def note(self, codes: pl.Series) -> NDArray[np.uint32]:
        """The codes as an array; `ids` will know them."""
        numbers = codes.to_numpy()
        self._end = max(self._end, int(numbers.max()) + 1 if len(numbers) else 0)
        return numbers

    def ids(self) -> pl.Series:
        """The id of each code up to the highest one noted."""
        codes = pl.int_range(self._end, dtype=pl.UInt32, eager=True)
        return codes.cat.to(self.dtype).cast(pl.String).rename("id")


@dataclass
class Log:
    """An opened log. `rows` and `below_threshold` count what `batches` has passed so far.

    Codes are given in the order in which polars' threads meet the ids: use them through `ranked`.
    """

    parts: list[Part]
    columns: Columns
    threshold: float | None = None
    rows: int = 0
    below_threshold: int = 0
    _codes: dict[str, Codes] = field(default_factory=lambda: {"user": Codes(), "item": Codes()})

    @classmethod
    def open(
        cls,
        source: LogSource,
        *,
        user: str | None = None,
        item: str | None = None,
        time: str | None = None,
        rating: str | None = None,
        threshold: float | None = None,
        separator: str | None = None,
    ) -> Log:
        """Find the columns, by name or by guess; nothing is read yet but headers and a sample."""
        parts = open_parts(source, separator=separator)
        if threshold is not None and rating is None:
            rating = "?"
        columns = choose_columns(parts[0], user=user, item=item, time=time, rating=rating)
        for part in parts:
            require(part, columns)
        return cls(parts, columns, threshold)

    @property
    def label(self) -> str:
        more = f" and {len(self.parts) - 1} more" if len(self.parts) > 1 else ""
        return self.parts[0].label + more

    def known_rows(self) -> int | None:
        """How many rows there are, where that can be told without reading them."""
        if not all(part.typed for part in self.parts):
            return None
        with reading(self.label):
            return sum(int(part.frame.select(pl.len()).collect().item()) for part in self.parts)

    def batches(self) -> Iterator[Batch]:
        """The rows that reach the threshold. A missing id or unreadable value is a DataError."""
        for part in self.parts:
            yield from self._batches_of(part)
        if not self.rows:
            raise DataError(f"{self.label}: holds no row below its header")
        if self.below_threshold == self.rows:
            raise DataError(
                f"{self.label}: no rating in column {self.columns.rating!r} reaches "
                f"the threshold {self.threshold}; lower it"
            )

    def ranked(self, role: str) -> tuple[pl.Series, NDArray[np.int32]]:
        """For 'user' or 'item': the ids, ascending, and the rank of each code among them."""
        name = getattr(self.columns, role)
        ids = self._codes[role].ids()
        # Text files have no types, so what looks like integers is; elsewhere the type decides.
        if all(not part.typed or part.schema[name].is_integer() for part in self.parts):
            ids = _as_integers(ids)
        order = ids.arg_sort().to_numpy()
        rank = np.empty(len(ids), dtype=np.int32)
        rank[order] = np.arange(len(ids), dtype=np.int32)
        return ids.gather(order), rank

    def _batches_of(self, part: Part) -> Iterator[Batch]:
        before = self.rows
        with reading(part.label):
            query = part.frame.select(self._expressions(part))
            for table in query.collect_batches(chunk_size=BATCH_ROWS, engine="streaming"):
                self._refuse_nulls(part, table, self.rows - before)
                self.rows += table.height
                if "rating" in table.columns:
                    kept = table.filter(pl.col("rating"))
                    self.below_threshold += table.height - kept.height
                    table = kept
                times = table["time"].to_numpy() if "time" in table.columns else None
                users, items = (codes.note(table[role]) for role, codes in self._codes.items())
                yield Batch(users, items, times)

    def _expressions(self, part: Part) -> list[pl.Expr]:
        """Columns 'user', 'item', 'time' and 'rating', the last one as whether it suffices."""
        columns = self.columns
        found = {
            role: id_expression(part, getattr(columns, role)).cast(codes.dtype).to_physical()
            for role, codes in self._codes.items()
        }
        if columns.time is not None:
            found["time"] = time_expression(part, columns.time)
        if columns.rating is not None and self.threshold is not None:
            found["rating"] = reaches_expression(part, columns.rating, self.threshold)
        return [expression.alias(role) for role, expression in found.items()]

    def _refuse_nulls(self, part: Part, table: pl.DataFrame, before: int) -> None:
        for role in table.columns:
            if table[role].null_count():
                row = before + int(table[role].is_null().arg_max() or 0)
                name = getattr(self.columns, role)
                value = part.frame.select(name).slice(row, 1).collect().item()
                what = _complaint(role, value)
                raise DataError(f"{part.label}: row {row + 1:,}: {what} in column {name!r}")


@dataclass(frozen=True)
class LogContents:
    """A log in memory, and what was done to it: rows = pairs + below_threshold + duplicates."""

    interactions: Interactions
    columns: Columns
    rows: int
    below_threshold: int
    duplicates: int


def read_log(
    source: LogSource,
    *,
    user: str | None = None,
    item: str | None = None,
    time: str | None = None,
    rating: str | None = None,
    threshold: float | None = None,
    separator: str | None = None,
) -> LogContents:
    """Read a file, a folder of part files or a data frame of polars or pandas; rows ascend by id.

    Columns are found by name or by guess. With a `threshold`, rows with a lower rating or none are
    left out. A pair that appears again is merged, at its first time.
    """
    log = Log.open(
        source,
        user=user,
        item=item,
        time=time,
        rating=rating,
        threshold=threshold,
        separator=separator,
    )
    batches = list(log.batches())
    users, user_ids = _rows_of(log, "user", np.concatenate([batch.users for batch in batches]))
    items, item_ids = _rows_of(log, "item", np.concatenate([batch.items for batch in batches]))
    times = [batch.times for batch in batches if batch.times is not None]
    interactions = Interactions.build(
        users, items, user_ids, item_ids, np.concatenate(times) if times else None
    )
    duplicates = len(users) - len(interactions)
    return LogContents(interactions, log.columns, log.rows, log.below_threshold, duplicates)


def _rows_of(log: Log, role: str, codes: NDArray[np.uint32]) -> tuple[NDArray[np.int32], IdMap]:
    """The codes as rows among the ids that are in use, ascending."""
    ids, rank = log.ranked(role)
    ranks = rank[codes]
    used = np.bincount(ranks, minlength=len(ids)) > 0
    row_of_rank = np.cumsum(used, dtype=np.int32) - 1
    return row_of_rank[ranks].astype(np.int32), IdMap(ids.filter(pl.Series(used)))


def _as_integers(ids: pl.Series) -> pl.Series:
    """The ids as integers if every one is written as integers are, and as they are if not."""
    numbers = ids.cast(pl.Int64, strict=False)
    return numbers if numbers.cast(pl.String).eq_missing(ids).all() else ids


def _complaint(role: str, value: object) -> str:
    if role in ("user", "item"):
        return f"no {role} id"
    if value is None:
        return f"no {role}"
    shown = repr(value)[:60]
    if role == "rating":
        return f"{shown} is not a number"
    return f"time {shown} is not written like the others"
