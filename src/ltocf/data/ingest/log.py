"""A log as numbered users and items, read once, some rows at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from ltocf.data.ingest.cells import values
from ltocf.data.ingest.cells.complaints import unused_columns, what_is_wrong
from ltocf.data.ingest.cells.dates import column_of_moments
from ltocf.data.ingest.cells.kinds import kind_expression, parse_kinds, weight_of_row
from ltocf.data.ingest.cells.moments import Moments, find_moments
from ltocf.data.ingest.cells.values import Codes
from ltocf.data.ingest.columns import LogColumns, choose_columns, require
from ltocf.data.ingest.readers import EXTRA, LogSource, Table, open_log, reading
from ltocf.data.ingest.recipe import Reading
from ltocf.data.ingest.roles import NAMES
from ltocf.data.pairs.columns import Arrays
from ltocf.data.pairs.store import TRAIN, UNLIKED
from ltocf.data.times import KNOWN_AS, TimeForm
from ltocf.errors import DataError

BATCH_ROWS = 1_000_000
REASONS = 3  # reasons reported for skipped rows, at most


@dataclass
class Log:
    """An opened log. The counts cover the rows that were read so far.

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
    passed_over: int = 0  # rows of a kind with weight 0
    returns: int = 0  # rows that take something back
    reasons: list[str] = field(default_factory=list)
    moments: list[Moments] = field(default_factory=list)  # how each table's times are read

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
        if how.weigh is not None and given["kind"] is None:
            given["kind"] = "?"
        columns = choose_columns(opened.tables[0], given, usual or {})
        for table in opened.tables:
            require(table, columns)
        log = cls(opened.tables, columns, how, opened.items)
        log._find_times() if columns.time else log._guess_times()
        if like is not None:
            log.codes = like.codes
            if log.time_form != like.time_form:
                raise _other_times(log.label, log.time_form, like.label, like.time_form)
        for role, codes in log.codes.items():
            # Text files have no types: there, ids that look like integers are. Else types decide.
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
        found = [note for table in self.tables for note in table.notes]
        found += [moments.note for moments in self.moments if moments.note]
        if self.returns and self.columns.quantity is not None:
            found.append(
                f"column {self.columns.quantity!r}: {self.returns:,} rows below 0 are returns, "
                "which take back what they return"
            )
        return list(dict.fromkeys([*found, *unused_columns(self.tables[0], self.columns)]))

    @property
    def time_form(self) -> TimeForm | None:
        """What the times are, if there are any."""
        return self.moments[0].form if self.moments else None

    @property
    def time_order(self) -> str | None:
        """Whether day or month comes first, if that had to be detected."""
        return next((moments.order for moments in self.moments if moments.order), None)

    @property
    def counts_amounts(self) -> bool:
        """Whether rows have amounts: weights to keep, or quantities that only show what was
        returned."""
        return self.weighted or self.columns.quantity is not None

    @property
    def weighted(self) -> bool:
        """Whether pairs have weights that are kept."""
        return self.how.weighted or self.columns.weight is not None

    def _guess_times(self) -> None:
        """Take the one column of dates for that of times, if it can be, and be read."""
        name = column_of_moments(self.tables[0], self.columns)
        if name is None or any(name not in table.schema for table in self.tables):
            return
        before = self.columns
        self.columns = replace(before, time=name, guessed=(*before.guessed, "time"))
        try:
            self._find_times()
        except DataError:  # such as 2/1/2024: a hint says that the column is not used
            self.columns, self.moments = before, []

    def _find_times(self) -> None:
        """How each table's times are read; those of all must be comparable."""
        assert self.columns.time is not None
        for table in self.tables:
            form = self.how.time_format or self.time_order
            with reading(table.label):
                self.moments.append(find_moments(table, self.columns.time, form))
            if self.moments[-1].form != self.time_form:
                raise _other_times(
                    table.label, self.moments[-1].form, self.tables[0].label, self.time_form
                )

    def known_rows(self) -> int | None:
        """The number of rows, if it is known without reading them."""
        if not all(table.typed for table in self.tables):
            return None
        with reading(self.label):
            return sum(int(table.frame.select(pl.len()).collect().item()) for table in self.tables)

    def rows(self, subset: int = TRAIN) -> Iterator[Arrays]:
        """All rows as 'user' and 'item' codes, 'subset', and 'time' and 'weight' if there are any.

        The subset is `subset`, or UNLIKED where the rating is too low. A missing id or unreadable
        value is a DataError, or with `skip_bad` counted.
        """
        yield from self.rows_of_tables(subset)
        self.check_read()

    def rows_of_tables(self, subset: int) -> Iterator[Arrays]:
        """The same, where others read the rest of the log: it may turn out to have no rows."""
        for number, table in enumerate(self.tables):
            yield from self._rows_of(table, self._expressions(number, table), subset)

    def add_counts(self, other: Log) -> None:
        """Count what another process has read of this log."""
        self.count += other.count
        self.below_threshold += other.below_threshold
        self.skipped += other.skipped
        self.passed_over += other.passed_over
        self.returns += other.returns
        self.reasons = [*self.reasons, *other.reasons][:REASONS]

    def check_read(self) -> None:
        """A DataError if nothing is left of all that was read."""
        if not self.count:
            raise DataError(f"{self.label}: has no rows")
        if self.skipped == self.count:
            raise DataError(f"{self.label}: no row can be read; the first: {self.reasons[0]}")
        if self.below_threshold == self.count - self.skipped:
            raise DataError(
                f"{self.label}: no rating in column {self.columns.rating!r} reaches "
                f"the threshold {self.how.threshold}; lower it"
            )

    def _rows_of(self, table: Table, cells: list[pl.Expr], subset: int) -> Iterator[Arrays]:
        before = self.count
        with reading(table.label):
            query = table.frame.select(cells)
            for rows in query.collect_batches(chunk_size=BATCH_ROWS, engine="streaming"):
                good = self._without_bad(table, rows, self.count - before)
                self.count += rows.height
                self.skipped += rows.height - good.height
                if "kind" in good.columns:
                    weighed = good.filter(pl.col("kind") != 0)
                    self.passed_over += good.height - weighed.height
                    good = weighed
                yield self._arrays(good, subset)

    def _arrays(self, rows: pl.DataFrame, subset: int) -> Arrays:
        found: Arrays = {role: codes.note(rows[role]) for role, codes in self.codes.items()}
        found["subset"] = np.full(rows.height, subset, dtype=np.uint8)
        if "rating" in rows.columns:
            disliked = ~rows["rating"].to_numpy()
            found["subset"][disliked] = UNLIKED
            self.below_threshold += int(np.count_nonzero(disliked))
        if "time" in rows.columns:
            found["time"] = rows["time"].to_numpy()
        if self.counts_amounts:
            found["weight"] = weight_of_row(rows)
            self.returns += int(np.count_nonzero(found["weight"] < 0))
        return found

    def _expressions(self, number: int, table: Table) -> list[pl.Expr]:
        """A column for each role, 'rating' as whether it suffices; null where a value is bad."""
        columns = self.columns
        found = {
            role: values.id_expression(table, getattr(columns, role))
            .cast(codes.dtype)
            .to_physical()
            for role, codes in self.codes.items()
        }
        if columns.time is not None:
            found["time"] = self.moments[number].expression
        if columns.rating is not None and self.how.threshold is not None:
            found["rating"] = values.reaches_expression(table, columns.rating, self.how.threshold)
        if columns.weight is not None:
            found["weight"] = values.weight_expression(table, columns.weight)
        elif columns.quantity is not None:
            found["weight"] = values.amount_expression(table, columns.quantity)
        if columns.kind is not None and self.how.weigh is not None:
            found["kind"] = kind_expression(table, columns.kind, parse_kinds(self.how.weigh))
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
                    f"{table.label}: {reason}; skip_bad=True (--skip-bad) skips such rows"
                )
            self.reasons.append(f"{table.label}: {reason}")
        return rows.filter(~bad)

    def _complaint(self, table: Table, row: int, role: str) -> str:
        name = EXTRA if role == "extra" else getattr(self.columns, role)
        value = table.frame.select(name).slice(row, 1).collect().item()
        if role == "extra":
            return f"row {row + 1:,}: more fields than columns, such as {value!r}"[:120]
        return f"row {row + 1:,}: {what_is_wrong(role, value)} in column {name!r}"


def _other_times(
    label: str, form: TimeForm | None, other_label: str, other: TimeForm | None
) -> DataError:
    this, that = ("missing" if which is None else KNOWN_AS[which] for which in (form, other))
    return DataError(
        f"{label}: its times are {this}, but those of {other_label} are {that}; make them alike"
    )
