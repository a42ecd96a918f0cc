"""How a column of times is written: numbers in some unit, or dates in some format.

Whether 2/1/2024 is in January or in February is decided by other dates of the column that can only
be read one way. If there are none, the caller has to say it. It is never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

import polars as pl

from ltocf.data.ingest.readers import Table
from ltocf.data.times import MILLION, PER_SECOND, UNITS, TimeForm, Unit, unit_of
from ltocf.errors import ConfigError, DataError

SAMPLE_ROWS = 1000
ORDERS = {"day-first": "%d{0}%m{0}", "month-first": "%m{0}%d{0}"}
CLOCKS = (
    "",
    *(
        gap + form
        for gap, form in product(
            (" ", ", ", "T"), ("%H:%M", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p")
        )
    ),
)
ZONES = ("%#z", " %#z")
YEAR_FIRST = [
    f"%Y{mark}%m{mark}%d{clock}{zone}"
    for mark, clock in product("-/.", CLOCKS)
    for zone in ("", *(ZONES if clock else ()))
]
WITH_NAMES = [
    date + clock
    for date in ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d. %b %Y", "%b %d, %Y", "%b %d %Y")
    for clock in CLOCKS
]
COMPACT = {8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}  # by the number of digits
# Two numbers that may be day and month, the mark between them, and a year of two or four digits.
SHORT = r"^\s*(\d{1,2})([-./])(\d{1,2})[-./](\d{4}|\d{2})(?:\D|$)"
EXAMPLE = "time_format='%m/%d/%Y %H:%M' (--time-format), or 'day-first', 'month-first'"


@dataclass(frozen=True)
class Moments:
    """How to read a column of times, the form of the result, and a note for people about it."""

    expression: pl.Expr  # 64-bit integers in the order of time, null where a value has another form
    form: TimeForm = "moments"
    order: str | None = None  # 'day-first' or 'month-first', if that had to be detected
    note: str | None = None


def check_time_format(given: str | None) -> None:
    if given is not None and "%" not in given and given not in (*ORDERS, *UNITS):
        choices = ", ".join([*ORDERS, *UNITS])
        raise ConfigError(
            f"time_format = {given!r} is not a time format; give one such as '%d.%m.%Y %H:%M', "
            f"or one of: {choices}"
        )


def find_moments(table: Table, name: str, given: str | None = None) -> Moments:
    """How the column is to be read; `given` is a form as `strptime` has it, 'day-first' or
    'month-first', or what numbers count in."""
    dtype, column = table.schema[name], pl.col(name)
    if isinstance(dtype, pl.Date | pl.Datetime):
        return Moments(column.cast(pl.Datetime("us")).cast(pl.Int64))
    if not (dtype.is_integer() or dtype.is_float() or dtype == pl.String):
        raise DataError(f"{table.label}: column {name!r} is {dtype}, not a time")
    sample = table.frame.select(column).head(SAMPLE_ROWS).collect().to_series().drop_nulls()
    unit: Unit | None = next((unit for unit in UNITS if unit == given), None)
    if dtype != pl.String:
        compact = _compact(sample.cast(pl.String, strict=False)) if dtype.is_integer() else None
        if compact and unit is None and len(sample):
            return Moments(_parsed(column.cast(pl.String), compact), note=_said(name, compact))
        return _numbers(column, sample, unit)
    text, sample = column.str.strip_chars(), sample.str.strip_chars()
    if given is not None and "%" in given:
        return _in_form(table, name, sample, given)
    if compact := _compact(sample) if unit is None else None:
        return Moments(_parsed(text, compact), note=_said(name, compact))
    numbers = sample.cast(pl.Float64, strict=False)
    if not len(sample) or 2 * numbers.is_not_null().sum() >= len(sample):
        whole = sample.cast(pl.Int64, strict=False)
        exact = whole.null_count() == numbers.null_count()  # every number is a whole one
        type_ = pl.Int64 if exact else pl.Float64
        read = whole if exact else numbers
        return _numbers(text.cast(type_, strict=False), read.drop_nulls(), unit)
    return _dates(table, name, sample, given)


def _numbers(column: pl.Expr, sample: pl.Series, unit: Unit | None) -> Moments:
    if sample.dtype.is_float():
        column = pl.when(column.abs() < 2.0**63).then(column)  # a larger number is not a time
    finite = sample.filter(sample.is_finite()) if sample.dtype.is_float() else sample
    middle = float(finite.cast(pl.Float64).abs().median() or 0)  # type: ignore[arg-type]
    unit = unit or unit_of(middle)
    fractions = sample.dtype.is_float() and bool((finite != finite.round()).any())
    if unit == "numbers":
        if sample.dtype.is_float() and fractions:
            scaled = (column * MILLION).round().cast(pl.Int64, strict=False)
            return Moments(scaled, "fractions")
        return Moments(column.cast(pl.Int64, strict=False), "numbers")
    per_second = PER_SECOND[unit]
    if sample.dtype.is_float():
        return Moments((column * (MILLION / per_second)).round().cast(pl.Int64, strict=False))
    whole = column.cast(pl.Int64, strict=False)
    if per_second > MILLION:
        return Moments(whole // (per_second // MILLION))
    factor = MILLION // per_second
    # A product that does not fit would wrap around silently.
    fits = whole.is_between(-(2**63) // factor + 1, (2**63 - 1) // factor)
    return Moments(pl.when(fits).then(whole * factor))


def _compact(sample: pl.Series) -> str | None:
    """'20240131' or '20240131183000', if all of the sample are such dates since 1970."""
    if not len(sample):
        return None
    pattern = COMPACT.get(len(str(sample[0])))
    if pattern is None or not sample.str.contains(r"^(19[7-9]|20)\d+$").all():
        return None
    return pattern if sample.str.to_datetime(pattern, strict=False).is_not_null().all() else None


def _parsed(text: pl.Expr, pattern: str) -> pl.Expr:
    return text.str.to_datetime(pattern, strict=False, time_unit="us").cast(pl.Int64)


def _said(name: str, pattern: str, why: str = "found") -> str:
    return f"times: column {name!r} is read as {pattern} ({why})"


def _in_form(table: Table, name: str, sample: pl.Series, pattern: str) -> Moments:
    # Chrono, by which polars parses, reads '24' as the year 24 if the format has four digits.
    text = pl.col(name).str.strip_chars()
    read = sample.to_frame().select(_parsed(text, pattern)).to_series()
    if len(sample) and not read.is_not_null().any():
        raise DataError(
            f"{table.label}: cannot read {sample[0]!r} in column {name!r} as {pattern!r}; "
            f"give its form with {EXAMPLE}"
        )
    return Moments(_parsed(text, pattern))


def _dates(table: Table, name: str, sample: pl.Series, given: str | None) -> Moments:
    short = sample.filter(sample.str.contains(SHORT))
    shape = re.match(SHORT, short[0]) if 2 * len(short) > len(sample) else None
    order, why = None, "found"
    if shape is None:
        patterns = [*YEAR_FIRST, *WITH_NAMES]
    else:
        order = given if given in ORDERS else None
        if order is None:
            order, why = _order(table, name, shape)
        year = "%Y" if len(shape[4]) == 4 else "%y"
        patterns = [ORDERS[order].format(shape[2]) + year + clock for clock in CLOCKS]
    text = pl.col(name).str.strip_chars()
    frame = sample.to_frame()
    read = {
        pattern: int(frame.select(_parsed(text, pattern).is_not_null().sum()).item())
        for pattern in patterns
    }
    best = max(patterns, key=lambda pattern: read[pattern])
    if not read[best]:
        raise DataError(
            f"{table.label}: cannot read {sample[0]!r} in column {name!r} as a time; give its form "
            f"with {EXAMPLE}, or give seconds since 1970 or dates such as '2024-01-31 18:30:00'"
        )
    note = None if shape is None or given is not None else _said(name, best, why)
    return Moments(_parsed(text, best), order=order, note=note)


def _order(table: Table, name: str, shape: re.Match[str]) -> tuple[str, str]:
    """Which of two numbers is the day, and why: it is above 12 somewhere."""
    fields = [
        pl.col(name).str.extract(SHORT, group).cast(pl.Int64, strict=False).max()
        for group in (1, 3)
    ]
    first, second = (
        table.frame.select(fields[0].alias("first"), fields[1].alias("second"))
        .collect(engine="streaming")
        .row(0)
    )
    if first <= 12 and second <= 12:
        if shape[2] == ".":
            return (
                "day-first",
                "with dots the day is first; a format of the times says otherwise (--time-format)",
            )
        raise DataError(
            f"{table.label}: column {name!r} has dates such as {shape[0].strip()!r}, in which day "
            "and month cannot be told apart; say which is first with time_format='day-first' or "
            "'month-first' (--time-format)"
        )
    if first > 12 and second > 12:
        raise DataError(
            f"{table.label}: column {name!r} mixes dates with the day first and with the month "
            f"first; make them alike, or give their form with {EXAMPLE}"
        )
    return ("day-first" if first > 12 else "month-first"), "found: a day is above 12"
