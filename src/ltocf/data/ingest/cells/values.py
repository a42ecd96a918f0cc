"""Polars expressions that turn the columns of a log into ids, ratings and weights."""

from __future__ import annotations

import polars as pl

from ltocf.data.ingest.readers import EXTRA, Table
from ltocf.data.pairs.store import LARGEST_WEIGHT, LEAST_WEIGHT
from ltocf.errors import DataError

SAMPLE_ROWS = 1000


def id_expression(table: Table, name: str) -> pl.Expr:
    """The ids as text, null where there is none. Binary of 16 bytes is a UUID."""
    dtype, column = table.schema[name], pl.col(name)
    if not table.typed:  # the reader has made empty values null
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
    """Whether a space follows each separator before this column: it is no part of the ids."""
    sample = table.frame.select(name).head(SAMPLE_ROWS).collect().to_series().drop_nulls()
    return len(sample) > 1 and bool(sample.str.starts_with(" ").all())


def reaches_expression(table: Table, name: str, threshold: float) -> pl.Expr:
    """Whether the rating is there and at least the threshold; null where it is not a number."""
    column = _number_column(table, name, "a rating")
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    unreadable = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
    return pl.when(~unreadable).then((number >= threshold).fill_null(False))


def weight_expression(table: Table, name: str) -> pl.Expr:
    """The weight, null where it is not a number that can count; below 0 it takes back."""
    number = _number_column(table, name, "a weight").cast(pl.Float64, strict=False)
    return pl.when(number.abs().is_between(LEAST_WEIGHT, LARGEST_WEIGHT)).then(number)


def amount_expression(table: Table, name: str) -> pl.Expr:
    """The weight, and 1 where it cannot count: of a column that nobody asked for."""
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
