"""How the values of a log's columns become ids, times, ratings and weights."""

from __future__ import annotations

import polars as pl

from ltocf.data.ingest.readers import EXTRA, Table
from ltocf.errors import DataError

TIME_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S%.f",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M:%S%.f",
)
SAMPLE_ROWS = 1000


def id_expression(table: Table, name: str) -> pl.Expr:
    """The ids as text, null where there is none. Binary of 16 bytes is a UUID."""
    dtype, column = table.schema[name], pl.col(name)
    if not table.typed:
        return column  # the reader has made empty values null
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


def reaches_expression(table: Table, name: str, threshold: float) -> pl.Expr:
    """Whether the rating is there and at least the threshold; null where it is not a number."""
    dtype, column = table.schema[name], pl.col(name)
    if not (dtype.is_numeric() or dtype == pl.String):
        raise DataError(f"{table.label}: column {name!r} is {dtype}, not a rating")
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    unreadable = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
    return pl.when(~unreadable).then((number >= threshold).fill_null(False))


def weight_expression(table: Table, name: str) -> pl.Expr:
    """The weight, null where it is not a finite number above 0."""
    dtype, column = table.schema[name], pl.col(name)
    if not (dtype.is_numeric() or dtype == pl.String):
        raise DataError(f"{table.label}: column {name!r} is {dtype}, not a weight")
    number = column.cast(pl.Float32, strict=False)
    return pl.when((number > 0) & number.is_finite()).then(number)


def extra_expression() -> pl.Expr:
    """Whether a row has as many fields as there are columns, null where it has more."""
    return pl.when(pl.col(EXTRA).is_null()).then(pl.lit(True))


def time_expression(table: Table, name: str) -> pl.Expr:
    """The times as 64-bit integers in the same order, null where the form is another one.

    Whole numbers stay; dates, and fractions of seconds since 1970, become microseconds since 1970.
    """
    dtype, column = table.schema[name], pl.col(name)
    if dtype.is_integer():
        return column.cast(pl.Int64, strict=False)
    if dtype.is_float():
        return (column * 1e6).round().cast(pl.Int64, strict=False)
    if isinstance(dtype, pl.Date | pl.Datetime):
        return column.cast(pl.Datetime("us")).cast(pl.Int64)
    if dtype == pl.String:
        sample = table.frame.select(column).head(SAMPLE_ROWS).collect().to_series().drop_nulls()
        return _parser_of(table, name, sample)
    raise DataError(f"{table.label}: column {name!r} is {dtype}, not a time")


def _parser_of(table: Table, name: str, sample: pl.Series) -> pl.Expr:
    """The first way of reading that suits the first value; the sample then tells it is the one."""
    text = pl.col(name).str.strip_chars()
    ways = [text.cast(pl.Int64, strict=False)]
    ways += [(text.cast(pl.Float64, strict=False) * 1e6).round().cast(pl.Int64, strict=False)]
    for pattern in TIME_FORMATS:
        moment = text.str.to_datetime(pattern, strict=False, time_unit="us")
        ways.append(moment.cast(pl.Int64))
    if sample.is_empty():
        return ways[0]
    read = [sample.to_frame().select(way).to_series().is_not_null() for way in ways]
    best = max(range(len(ways)), key=lambda way: (read[way].sum(), -way))
    if not read[best].any():
        raise DataError(
            f"{table.label}: cannot read {sample[0]!r} in column {name!r} as a time; "
            "give seconds since 1970 or dates such as '2024-01-31 18:30:00'"
        )
    return ways[best]
