"""Ranked rows -> data frames with the caller's ids and what the data set has to display."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Rows
from ltocf.files import replacing
from ltocf.ranking.top_k import Ranked
from ltocf.recommend.rules import ItemRules

# Of several columns to display, the one that names an item; else the first with text.
NAMES = ("name", "title", "label")
OURS = {"user", "rank", "item", "similar", "score", "source", "contribution", "moved_by"}


def ranked_table(
    owners: pl.Series, ranked: Ranked, targets: pl.Series, cold: NDArray[np.bool_] | None = None
) -> tuple[pl.DataFrame, Rows]:
    """A row for each place of each owner's list, in columns named as the two series and rank,
    score, and with `cold` also source; and the target row of each. Empty places are left out."""
    found = ranked.items >= 0
    owner, place = np.nonzero(found)
    rows: Rows = ranked.items[found]
    columns = [
        owners[owner],
        pl.Series("rank", place + 1),
        targets[rows],
        pl.Series("score", ranked.scores[found]),
    ]
    if cold is not None:
        columns.append(pl.Series("source", np.where(cold, "popularity", "model")[owner]))
    return pl.DataFrame(columns), rows


def with_display(table: pl.DataFrame, dataset: Dataset, items: Rows) -> pl.DataFrame:
    """`table` and the display columns of its items; one named as ours is called item_NAME."""
    if dataset.item_names is None:
        return table
    shown = dataset.item_names[items]
    return table.hstack(shown.rename(names_apart(shown.columns, OURS)))


def names_apart(names: Sequence[str], taken: Collection[str]) -> dict[str, str]:
    """A name for each column that is not `taken`: item_score for score, and item_item_score where
    the items have both."""
    found: dict[str, str] = {}
    for name in names:
        new = name
        while new in taken or new in found.values() or (new != name and new in names):
            new = f"item_{new}"
        found[name] = new
    return found


def with_boosts(table: pl.DataFrame, rules: ItemRules, items: Rows) -> pl.DataFrame:
    """`table` and, where rules boost, which of them raised or lowered each item."""
    if not rules.boosted:
        return table
    notes = [", ".join(rules.notes(item)) or None for item in items.tolist()]
    return table.with_columns(pl.Series("moved_by", notes, dtype=pl.String))


def flat(table: pl.LazyFrame) -> pl.LazyFrame:
    """The table as a CSV can hold it: a list of tags is written 'a|b|c'."""
    lists = [name for name, dtype in table.collect_schema().items() if dtype == pl.List]
    return table.with_columns(pl.col(lists).list.join("|"))


def write_table(table: pl.DataFrame, output: Path) -> None:
    """One small table as the kind of file that its name asks for."""
    with replacing(output) as temporary:
        if output.suffix == ".csv":
            flat(table.lazy()).collect().write_csv(temporary)
        else:
            table.write_parquet(temporary)


def naming_column(shown: pl.DataFrame) -> str | None:
    """The column by which shell, service and reasons call an item, if there is one."""
    texts = [name for name in shown.columns if shown[name].dtype == pl.String]
    named = [name for name in texts if name.lower() in NAMES]
    named += [name for name in texts if any(word in name.lower() for word in NAMES)]
    return next(iter(named + texts), None)
