"""Polars expressions that turn the columns of a log into ids, ratings and weights, and the numbers
that ids get."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.ingest.readers import EXTRA, Table
from ltocf.data.pairs.store import LARGEST_WEIGHT, LEAST_WEIGHT
from ltocf.errors import DataError

SAMPLE_ROWS = 1000


def id_expression(table: Table, name: str) -> pl.Expr:
    """The ids as text, null where there is none. Binary of 16 bytes is a UUID."""
    dtype, column = table.schema[name], pl.col(name)
    if not table.typed:  # the reader has turned empty values into nulls
        return column.str.strip_chars_start(" ") if _spaced(table, name) else column
    if dtype == pl.Binary:
        text = column.bin.encode("hex")
        parts = [text.str.slice(a, n) for a, n in ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))]
        uuid = column.bin.size() == 16
        return pl.when(uuid).then(pl.concat_str(parts, separator="-")).otherwise(text)
    if dtype.is_integer() or isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        text = column.cast(pl.String)
        return pl.when(text != "").then(text)
    if dtype == pl.Null:
        return column.cast(pl.String)
    if dtype.is_float():  # as pandas holds whole numbers where one is missing
        whole = column.cast(pl.Int64, strict=False)
        return pl.when(whole == column).then(whole.cast(pl.String))
    raise DataError(
        f"{table.label}: column {name!r} is {dtype}, but ids must be text or whole numbers; "
        "is a value missing, or the type mixed?"
    )


def _spaced(table: Table, name: str) -> bool:
    """Whether a space follows each separator before this column; it is then not part of the ids."""
    sample = table.frame.select(name).head(SAMPLE_ROWS).collect().to_series().drop_nulls()
    return len(sample) > 1 and bool(sample.str.starts_with(" ").all())


def reaches_expression(table: Table, name: str, threshold: float) -> pl.Expr:
    """Whether there is a rating of at least the threshold; null where it is not a number."""
    column = _number_column(table, name, "a rating")
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    unreadable = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
    return pl.when(~unreadable).then((number >= threshold).fill_null(False))


def weight_expression(table: Table, name: str) -> pl.Expr:
    """The weight, null where it is not a usable number; below 0 it takes back."""
    number = _number_column(table, name, "a weight").cast(pl.Float64, strict=False)
    return pl.when(number.abs().is_between(LEAST_WEIGHT, LARGEST_WEIGHT)).then(number)


def amount_expression(table: Table, name: str) -> pl.Expr:
    """The weight, or 1 where it is unusable: for a column that the caller did not ask for."""
    return weight_expression(table, name).fill_null(1.0)


def _number_column(table: Table, name: str, what: str) -> pl.Expr:
    dtype, column = table.schema[name], pl.col(name)
    if dtype == pl.String:
        return column.str.strip_chars()
    if not dtype.is_numeric():
        raise DataError(f"{table.label}: column {name!r} is {dtype}, not {what}")
    return column


def extra_expression() -> pl.Expr:
    """Whether a row has as many fields as there are columns, null where it has more."""
    return pl.when(pl.col(EXTRA).is_null()).then(pl.lit(True))


class Codes:
    """Numbers that polars gives to ids as it meets them, the same ones while this object lives."""

    def __init__(self) -> None:
        self.dtype = pl.Categorical(pl.Categories.random())
        # Keeps the numbering alive: polars drops unused categories.
        self._anchor = pl.Series(dtype=self.dtype)
        self._noted = np.zeros(0, dtype=bool)
        self.typed_as_integers = True

    def note(self, codes: pl.Series) -> NDArray[np.uint32]:
        """Note the ids of a column and return their codes as an array."""
        numbers = codes.to_numpy()
        end = int(numbers.max()) + 1 if len(numbers) else 0
        if (missing := end - len(self._noted)) > 0:
            room = np.zeros(max(missing, len(self._noted)), dtype=bool)
            self._noted = np.concatenate([self._noted, room])
        self._noted[numbers] = True
        return numbers

    @property
    def noted(self) -> NDArray[np.int64]:
        """The codes of the ids that were noted, ascending."""
        return np.flatnonzero(self._noted)

    def ids(self) -> pl.Series:
        """The id of each noted code, in order of the codes."""
        codes = pl.Series(self.noted.astype(np.uint32))
        return codes.cat.to(self.dtype).cast(pl.String).rename("id")

    def ranked(self) -> tuple[pl.Series, NDArray[np.int32]]:
        """The ids, ascending, and the rank of each code among them, -1 for one that was never
        noted: polars also numbers ids of rows that are then left out."""
        ids = _as_integers(self.ids()) if self.typed_as_integers else self.ids()
        order = ids.arg_sort().to_numpy()
        rank = np.full(len(self._noted), -1, dtype=np.int32)
        rank[self.noted[order]] = np.arange(len(ids), dtype=np.int32)
        return ids.gather(order), rank


def _as_integers(ids: pl.Series) -> pl.Series:
    """The ids as integers if every one is written as integers are, and as they are if not.

    Numbers that all end in '.0' are integers too: pandas writes them so where one is missing.
    """
    without_point = ids.str.strip_suffix(".0") if ids.str.ends_with(".0").all() else ids
    numbers = without_point.cast(pl.Int64, strict=False)
    return numbers if numbers.cast(pl.String).eq_missing(without_point).all() else ids
