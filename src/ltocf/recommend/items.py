"""Questions about the catalogue of a data set: attributes, counts and searches."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time
from typing import Any

import numpy as np
import polars as pl

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Rows
from ltocf.recommend.rules import Condition
from ltocf.recommend.rules.conditions import shelf_of

EXAMPLES = 3


def describe(dataset: Dataset) -> dict[str, Any]:
    """How many items there are, and of each attribute its kind and its most common values, or of
    numbers and times the range."""
    catalogue, shelf = dataset.catalogue, shelf_of(dataset)
    attributes = {}
    for name, kind in catalogue.kinds.items():
        values = catalogue.values_of(name)["tag"].value_counts(sort=True)
        common = values.sort(["count", "tag"], descending=[True, False]).head(EXAMPLES)
        column = catalogue.table[name]
        about: dict[str, Any] = {"kind": kind, "known": len(column) - column.null_count()}
        about["values"] = values.height
        if kind in ("number", "time"):
            least, most = column.min(), column.max()
            about["range"] = "" if least is None else f"{_short(least)} to {_short(most)}"
        else:
            about["most common"] = ", ".join(common["tag"])
        attributes[name] = about
    return {
        "items": len(catalogue),
        "untouched": int((dataset.split.seen.item_degrees == 0).sum()),
        "unavailable": int((~catalogue.available(shelf.now)).sum()),
        "attributes": attributes,
    }


def find_items(
    dataset: Dataset, search: str | None = None, where: Iterable[str] = ()
) -> pl.DataFrame:
    """The items whose name or id contains the text, and which meet the conditions: columns item,
    touches and the attributes, the most touched first."""
    rows = _rows(dataset, search, where)
    touches = dataset.split.seen.item_degrees[rows]
    order = np.argsort(-touches, kind="stable")
    rows = rows[order]
    table = pl.DataFrame(
        [dataset.catalogue.ids.ids[rows].rename("item"), pl.Series("touches", touches[order])]
    )
    shown = dataset.catalogue.table
    ours = {name: f"item_{name}" for name in shown.columns if name in table.columns}
    return table.hstack(shown[rows].rename(ours)) if shown.width else table


def count_values(dataset: Dataset, attribute: str, where: Iterable[str] = ()) -> pl.DataFrame:
    """How many items have each value of an attribute, the most common first."""
    catalogue = dataset.catalogue
    name = catalogue.column(attribute)
    rows = _rows(dataset, None, where)
    values = catalogue.values_of(name).filter(pl.col("row").is_in(rows.astype(np.int64).tolist()))
    counted = values.group_by("tag").len(name="items").rename({"tag": name})
    return counted.sort(["items", name], descending=[True, False])


def _short(value: Any) -> str:
    """A number or a time in the form in which people write it."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}" if value.time() == time() else f"{value:%Y-%m-%d %H:%M}"
    return f"{value:g}"


def _rows(dataset: Dataset, search: str | None, where: Iterable[str]) -> Rows:
    catalogue, shelf = dataset.catalogue, shelf_of(dataset)
    held = np.ones(len(catalogue), dtype=bool)
    for text in where:
        held &= Condition.parse(text).holds(shelf)
    if search is not None:
        texts = pl.Series(catalogue.names) + "\n" + catalogue.ids.ids.cast(pl.String)
        found = texts.str.to_lowercase().str.contains(search.lower(), literal=True)
        held &= found.to_numpy()
    return np.flatnonzero(held).astype(np.int32)
