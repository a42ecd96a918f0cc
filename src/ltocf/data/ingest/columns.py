"""Which column is what, and how its values become ids and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ltocf.data.ingest.readers import Part
from ltocf.errors import DataError

# Compared without case and punctuation, so 'User-ID' is 'userid'; earlier names win.
NAMES = {
    "user": "user userid uid username customer customerid member memberid person personid visitor "
    "visitorid account accountid client clientid reviewer reviewerid listener u",
    "item": "item itemid iid product productid movie movieid book bookid track trackid song songid "
    "artist artistid article articleid place placeid business businessid location locationid venue "
    "venueid asin sku isbn game gameid page i",
    "time": "time timestamp ts datetime date when created createdat eventtime visited visitedat "
    "unixreviewtime day",
    "rating": "rating ratings stars score overall weight plays playcount count quantity value",
}
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


@dataclass(frozen=True)
class Columns:
    """The names of a log's columns. `guessed` lists the roles that nobody named."""

    user: str
    item: str
    time: str | None = None
    rating: str | None = None
    guessed: tuple[str, ...] = ()

    def describe(self) -> str:
        roles = {"user": self.user, "item": self.item, "time": self.time, "rating": self.rating}
        return ", ".join(
            f"{role} = {name!r}{' (guessed)' if role in self.guessed else ''}"
            for role, name in roles.items()
            if name is not None
        )


def choose_columns(part: Part, **given: str | None) -> Columns:
    """The given names, which must exist, and for `user`, `item` and `time` else a guess.

    `rating` is guessed only if it is given as '?', since a rating matters only beside a threshold.
    """
    names = part.schema.names()
    chosen: dict[str, str] = {}
    for role in NAMES:
        name = given.get(role)
        if name is not None and name != "?":
            chosen[role] = _existing(part, role, name)
        elif (role != "rating" or name == "?") and (guess := _guess(role, names)) is not None:
            chosen[role] = guess
        elif role in ("user", "item") or name == "?":
            raise DataError(
                f"{part.label}: cannot guess the {role} column; name it with --{role}. "
                f"The columns are: {_listing(names)}"
            )
    guessed = tuple(role for role in chosen if given.get(role) in (None, "?"))
    if len(set(chosen.values())) < len(chosen):
        raise DataError(f"{part.label}: one column has two roles: {chosen}; name them apart")
    return Columns(**chosen, guessed=guessed)


def choose_item_column(part: Part, name: str) -> str:
    """The column of ids in a table of items: called `name` as in the log, or 'id', or a guess."""
    names = part.schema.names()
    for candidate in (name, "id", _guess("item", names)):
        if candidate in names:
            return candidate
    raise DataError(f"{part.label}: no column {name!r} with item ids; it has: {_listing(names)}")


def require(part: Part, columns: Columns) -> None:
    """A DataError unless the part has all the columns, as every part of a folder must."""
    for role in NAMES:
        if (name := getattr(columns, role)) is not None:
            _existing(part, role, name)


def id_expression(part: Part, name: str) -> pl.Expr:
    """The ids as text, null where there is none. Binary of 16 bytes is a UUID."""
    dtype, column = part.schema[name], pl.col(name)
    if not part.typed:
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
    raise DataError(
        f"{part.label}: column {name!r} is {dtype}, but ids must be text or whole numbers; "
        "is a value missing, or the type mixed?"
    )


def reaches_expression(part: Part, name: str, threshold: float) -> pl.Expr:
    """Whether the rating is there and at least the threshold; null where it is not a number."""
    dtype, column = part.schema[name], pl.col(name)
    if not (dtype.is_numeric() or dtype == pl.String):
        raise DataError(f"{part.label}: column {name!r} is {dtype}, not a rating")
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    unreadable = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
    return pl.when(~unreadable).then((number >= threshold).fill_null(False))


def time_expression(part: Part, name: str) -> pl.Expr:
    """The times as 64-bit integers in the same order, null where the form is another one.

    Whole numbers stay; dates, and fractions of seconds since 1970, become microseconds since 1970.
    """
    dtype, column = part.schema[name], pl.col(name)
    if dtype.is_integer():
        return column.cast(pl.Int64, strict=False)
    if dtype.is_float():
        return (column * 1e6).round().cast(pl.Int64, strict=False)
    if isinstance(dtype, pl.Date | pl.Datetime):
        return column.cast(pl.Datetime("us")).cast(pl.Int64)
    if dtype == pl.String:
        sample = part.frame.select(column).head(SAMPLE_ROWS).collect().to_series().drop_nulls()
        return _parser_of(part, name, sample)
    raise DataError(f"{part.label}: column {name!r} is {dtype}, not a time")


def _parser_of(part: Part, name: str, sample: pl.Series) -> pl.Expr:
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
            f"{part.label}: cannot read {sample[0]!r} in column {name!r} as a time; "
            "give seconds since 1970 or dates such as '2024-01-31 18:30:00'"
        )
    return ways[best]


def _guess(role: str, names: Sequence[str]) -> str | None:
    plain = {"".join(c for c in name.lower() if c.isalnum()): name for name in reversed(names)}
    return next((plain[name] for name in NAMES[role].split() if name in plain), None)


def _existing(part: Part, role: str, name: str) -> str:
    names = part.schema.names()
    if name not in names:
        raise DataError(
            f"{part.label}: no column {name!r} for the {role}; the columns are: {_listing(names)}"
        )
    return name


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:20])
    return f"{shown}, ..." if len(names) > 20 else shown
