"""Kinds of events and their weights: view=1,cart=3,purchase=5,return=-5,dislike=hide."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.ingest.readers import Table
from ltocf.errors import ConfigError

HIDE = "hide"
EXAMPLE = "view=1,cart=3,purchase=5,return=-5,dislike=hide"
# Parts of names of kinds that are not likes.
TAKES_BACK = ("return", "refund", "cancel", "remove", "unlike")
HIDES = ("dislike", "hide", "block", "notinterested", "notforme")


def parse_kinds(table: str | Mapping[str, float | str] | None) -> dict[str, float]:
    """The weight of each kind. Above 0 it is a like of that strength, below 0 it takes back so
    much, and 0 is ignored. 'hide' is minus infinity: it takes back everything, for good."""
    if table is None:
        return {}
    entries = _entries(table) if isinstance(table, str) else [*table.items()]
    kinds: dict[str, float] = {}
    for kind, value in entries:
        if kind in kinds:
            raise ConfigError(f"weigh (--weigh) names {kind!r} twice; name each kind once")
        kinds[kind] = -inf if str(value) == HIDE else _number(kind, value)
    if not any(value > 0 for value in kinds.values()):
        raise ConfigError(
            "weigh (--weigh) gives no kind a weight above 0, so nothing would be a like; give one, "
            f"as in {EXAMPLE}"
        )
    return kinds


def _entries(text: str) -> list[tuple[str, str]]:
    found = []
    for entry in text.split(","):
        kind, mark, value = (word.strip() for word in entry.rpartition("="))
        if not (kind and mark and value):
            raise ConfigError(f"weigh (--weigh) has {entry!r}; write KIND=NUMBER, as in {EXAMPLE}")
        found.append((kind, value))
    return found


def _number(kind: str, value: float | str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = inf
    if not isfinite(number):
        raise ConfigError(
            f"weigh (--weigh) has {kind}={value}; give a number, or 'hide' for items that the user "
            "does not want to see again"
        )
    return number


def sign_of_kind(kind: str) -> float:
    """The weight of a kind for which none is given, by its name alone: 1 for a like, -1 if it takes
    one back, minus infinity if it hides."""
    plain = "".join(letter for letter in kind.lower() if letter.isalnum())
    if any(word in plain for word in HIDES):
        return -inf
    return -1.0 if any(word in plain for word in TAKES_BACK) else 1.0


def count_of_kind(kind: str | None, kinds: Mapping[str, float]) -> float:
    """The weight of an event of this kind: above 0 it is a like, below 0 it takes back so much, and
    minus infinity hides. A kind that `kinds` does not have is weighted by its name."""
    return 1.0 if kind is None else kinds.get(kind, sign_of_kind(kind))


def kind_expression(table: Table, name: str, kinds: Mapping[str, float]) -> pl.Expr:
    """The weight of each row's kind, null for a kind that `kinds` does not have."""
    text = pl.col(name).cast(pl.String).str.strip_chars()
    names, numbers = list(kinds), [float(value) for value in kinds.values()]
    return text.replace_strict(
        pl.Series(names, dtype=pl.String),
        pl.Series(numbers, dtype=pl.Float64),
        default=None,
        return_dtype=pl.Float64,
    )


def weight_of_row(rows: pl.DataFrame) -> NDArray[np.float32]:
    """The weight of each row times that of its kind. A kind that takes back always takes back,
    whether or not its quantity has a minus sign."""
    weight = rows["weight"].to_numpy() if "weight" in rows.columns else np.ones(rows.height)
    if "kind" in rows.columns:
        kind = rows["kind"].to_numpy()
        weight = np.where(kind < 0, np.abs(weight) * kind, weight * kind)
    return weight.astype(np.float32)
