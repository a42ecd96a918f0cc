"""The kinds of attributes that items have, and how text becomes values of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import polars as pl

Kind = Literal["text", "category", "tags", "number", "time", "flag"]
TAGS, TIMES = pl.List(pl.String), pl.Datetime("us")
# Usual names of columns that have a meaning; compared without case and punctuation.
ROLES = {
    "name": "name title label displayname productname itemname",
    "picture": "picture pictureurl image imageurl img photo photourl thumbnail cover poster",
    "available": "available instock active isavailable",
    "hidden": "hidden",
    "arrival": "added addedat arrived arrival created createdat released releasedate published "
    "publishedat availablefrom new since",
    "expiry": "expires expiresat expiry availableuntil until",
}
KINDS_OF_ROLES: dict[str, Kind] = {
    "available": "flag",
    "hidden": "flag",
    "arrival": "time",
    "expiry": "time",
}
TRUE, FALSE = ("true", "yes", "1", "y", "t"), ("false", "no", "0", "n", "f")
NUMBER = r"^-?(0|[1-9]\d*)(\.\d+)?$"  # '007' is a code, not a number
DATES = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%d.%m.%Y",
)


def typed_attribute(column: pl.Series, *, from_text: bool) -> pl.Series:
    """The column as one of the kinds of attributes.

    Text that is all dates is times, and 'a|b|c' or a JSON list is a list of tags. Text is also read
    as numbers or as yes and no, but only if every column is text (`from_text`).
    """
    dtype = column.dtype
    if isinstance(dtype, pl.List | pl.Array):
        return column.cast(TAGS)
    if dtype.is_temporal():
        return column.cast(TIMES, strict=False)
    if dtype.is_numeric() or dtype == pl.Boolean:
        return column
    if isinstance(dtype, pl.Struct):
        return column.struct.json_encode()
    text = column.cast(pl.String, strict=False)
    text = text.set(text.str.strip_chars() == "", None)
    return _typed_text(text, from_text) if text.null_count() < len(text) else text


def _typed_text(text: pl.Series, from_text: bool) -> pl.Series:
    """A way of reading counts only if it reads every value."""
    values = text.drop_nulls().str.strip_chars()
    words = column_called([text.name], f"{ROLES['name']} {ROLES['picture']}".split())
    if words is not None:
        return text
    if from_text and values.str.contains(NUMBER).all():
        whole = not values.str.contains(".", literal=True).any()
        if (
            column_called([text.name], ROLES["available"].split())
            and values.is_in(["0", "1"]).all()
        ):
            return text.str.strip_chars() == "1"
        return text.str.strip_chars().cast(pl.Int64 if whole else pl.Float64, strict=False)
    if from_text and values.str.to_lowercase().is_in(["true", "false", "yes", "no"]).all():
        return text.str.strip_chars().str.to_lowercase().is_in(["true", "yes"])
    if (values.str.starts_with("[") & values.str.ends_with("]")).all():
        try:
            return text.str.json_decode(TAGS)
        except pl.exceptions.PolarsError:
            return text
    if values.str.contains("|", literal=True).any():
        return _split_tags(text)
    for form in DATES:
        moments = values.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC")
        if not moments.null_count():
            whole_column = text.str.strip_chars().str.to_datetime(
                form, strict=False, time_unit="us", time_zone="UTC"
            )
            return whole_column.dt.replace_time_zone(None)
    return text


def _split_tags(text: pl.Series) -> pl.Series:
    stripped = pl.element().str.strip_chars()
    return text.str.split("|").list.eval(stripped.filter(stripped != ""))


def typed_value(kind: Kind | None, value: Any) -> Any:
    """A value from JSON or a form, converted to this kind of attribute; else a ValueError."""
    if value is None or value == "":
        return None
    if isinstance(value, list | tuple) and kind in (None, "tags"):
        return [str(tag) for tag in value]
    if kind == "tags":
        return [tag for tag in (part.strip() for part in str(value).split("|")) if tag]
    if kind == "flag":
        return as_flag(value)
    if kind == "number":
        return value if isinstance(value, int) and not isinstance(value, bool) else float(value)
    if kind == "time":
        return as_moment(value)
    return value if kind is None and isinstance(value, bool | int | float) else str(value)


def kind_of_value(value: Any) -> Kind:
    """The kind of an attribute with this value from JSON, as a first guess."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    return "tags" if isinstance(value, list) else "text"


def kind_by_name(name: str) -> Kind | None:
    """The kind that an attribute of this name must have because of its meaning, before any item has
    it."""
    for role, kind in KINDS_OF_ROLES.items():
        if column_called([name], ROLES[role].split()) is not None:
            return kind
    return None


def as_flag(value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in TRUE + FALSE:
        raise ValueError(f"{value!r} is neither true nor false")
    return text in TRUE


def as_moment(value: Any) -> datetime:
    """A time from a date in ISO's format or from seconds since 1970; without a zone it is UTC."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, int | float):
        moment = datetime.fromtimestamp(value, UTC)
    else:
        moment = datetime.fromisoformat(str(value).strip())
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def column_called(columns: Sequence[str], words: Sequence[str]) -> str | None:
    """The first column that has one of these names; earlier names win."""
    called = {plain(name): name for name in reversed(columns)}
    return next((called[word] for word in words if word in called), None)


def as_json(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
