"""Turn lists into data frames with the caller's ids and the display columns of the data set."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Rows
from ltocf.recommend.lists import FittedModel, ItemList
from ltocf.recommend.rules import ItemRules, Rules
from ltocf.recommend.rules.conditions import shelf_of
from ltocf.storage.files import replacing

OURS = {"user", "rank", "item", "similar", "score", "source", "contribution", "moved_by"}


def ranked_table(
    owners: pl.Series, lists: Sequence[ItemList], targets: pl.Series, *, sources: bool = False
) -> tuple[pl.DataFrame, Rows]:
    """A row for each place of each owner's list, in columns named as the two series and rank,
    score, and with `sources` also source; and the target row of each."""
    if len(lists) == 1:
        return _one_list(owners, lists[0], targets, sources)
    counts = [len(found.items) for found in lists]
    owner = np.repeat(np.arange(len(lists)), counts)
    places = [np.arange(1, count + 1) for count in counts]
    rows: Rows = np.concatenate([np.empty(0, np.int32), *(found.items for found in lists)])
    scores = np.concatenate([np.empty(0, np.float32), *(found.scores for found in lists)])
    columns = [
        owners[owner],
        pl.Series("rank", np.concatenate([np.empty(0, np.int64), *places])),
        targets[rows],
        pl.Series("score", scores),
    ]
    if sources:
        names = np.array([found.source for found in lists], dtype=object)
        columns.append(pl.Series("source", names[owner], dtype=pl.String))
    return pl.DataFrame(columns), rows


def _one_list(
    owners: pl.Series, found: ItemList, targets: pl.Series, sources: bool
) -> tuple[pl.DataFrame, Rows]:
    """The same of one list, whose owner and source are repeated and not gathered: half the time."""
    count = len(found.items)
    columns = [
        owners.new_from_index(0, count),
        pl.Series("rank", np.arange(1, count + 1)),
        targets[found.items],
        pl.Series("score", found.scores),
    ]
    if sources:
        columns.append(pl.Series("source", [found.source]).new_from_index(0, count))
    return pl.DataFrame(columns), found.items


def items_table(
    fitted: FittedModel,
    owners: pl.Series,
    lists: Sequence[ItemList],
    rules: Rules,
    called: str = "item",
) -> pl.DataFrame:
    """Lists of items by the caller's ids: which boosts moved each, and what there is to display of
    it. `called` names the column of the items; only lists of people have a source."""
    targets = fitted.seen.item_ids.ids.rename(called)
    table, items = ranked_table(owners, lists, targets, sources=called == "item")
    table = with_boosts(table, rules.on(shelf_of(fitted.dataset)), items)
    return with_display(table, fitted.dataset, items)


def with_display(table: pl.DataFrame, dataset: Dataset, items: Rows) -> pl.DataFrame:
    """`table` and the display columns of its items; a column whose name is taken becomes
    item_NAME."""
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
    """Write a small table as the kind of file that its name ends in."""
    with replacing(output) as temporary:
        if output.suffix == ".csv":
            flat(table.lazy()).collect().write_csv(temporary)
        else:
            table.write_parquet(temporary)
