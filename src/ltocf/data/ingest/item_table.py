"""A table of items becomes a catalogue: CSV, Parquet, JSON lines or a data frame, typed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from ltocf.data.attributes import typed_attribute
from ltocf.data.dataset import Dataset
from ltocf.data.ids import IdMap
from ltocf.data.ingest.cells.values import id_expression
from ltocf.data.ingest.columns import choose_item_column
from ltocf.data.ingest.readers import LogSource, open_log, reading
from ltocf.errors import DataError

JSON_LINES, JSON = (".jsonl", ".ndjson"), ".json"


@dataclass(frozen=True, eq=False)
class ItemTable:
    """The ids of a table of items, each once and as text, and the attributes of each."""

    ids: pl.Series
    attributes: pl.DataFrame

    def arranged(self, ids: IdMap) -> tuple[pl.DataFrame, int]:
        """A row for each of `ids`, null where the table lacks it; and how many it lacks."""
        key = ids.ids.cast(pl.String).rename("\x1fid").to_frame()
        known = self.attributes.with_columns(self.ids.alias("\x1fid"))
        found = key.join(known, on="\x1fid", how="left", maintain_order="left").drop("\x1fid")
        return found, int((~key["\x1fid"].is_in(self.ids.implode())).sum())


def read_items(source: LogSource, log_column: str) -> ItemTable:
    """Every item of the table; of an id that comes twice, the first row counts.

    The table's id column is the one called as in the log, or a guess.
    """
    tables = []
    for table in open_log(_opened(source)).tables:
        column = choose_item_column(table, log_column)
        others = [name for name in table.schema.names() if name != column]
        # An attribute called 'id' would hide the data set's own.
        shown = [pl.col(name).alias("items_id" if name == "id" else name) for name in others]
        with reading(table.label):
            key = id_expression(table, column).alias("\x1fid")
            rows = table.frame.select(key, *shown).collect(engine="streaming")
            tables.append((rows, table.typed))
    from_text = not any(typed for _, typed in tables)
    whole = pl.concat([rows for rows, _ in tables], how="vertical_relaxed")
    whole = whole.filter(pl.col("\x1fid").is_not_null())
    whole = whole.unique("\x1fid", keep="first", maintain_order=True)
    columns = [
        typed_attribute(column, from_text=from_text)
        for column in whole.drop("\x1fid").get_columns()
    ]
    return ItemTable(whole["\x1fid"].rename("id"), pl.DataFrame(columns))


def describe_items(
    ids: pl.Series, given: LogSource | None, beside: Path | None, log_column: str
) -> tuple[pl.DataFrame, int | None]:
    """The items with their attributes, and how many of the log's the table does not know.

    Every item of a `given` table is one of the data set. A table that came with the log, as in
    MovieLens, adds no items: published protocols rank only items that somebody rated.
    """
    source = beside if given is None else given
    if source is None:
        return ids.rename("id").to_frame(), None
    table, known = read_items(source, log_column), IdMap(ids)
    _, unnamed = table.arranged(known)
    whole = known if given is None else known.extended(table.ids.to_list())
    return whole.ids.rename("id").to_frame().hstack(table.arranged(whole)[0]), unnamed


def add_items(
    dataset: Dataset, source: LogSource, log_column: str = "item", *, ids: IdMap | None = None
) -> Dataset:
    """The data set with all items of a table, touched or not, and their attributes.

    Where the table says nothing of an attribute that an item had, it keeps it. `ids` are the
    enlarged ids, if the caller has them; else old ids keep their rows and new ones come after.
    """
    table = read_items(source, log_column)
    old_ids, old = dataset.split.train.item_ids, dataset.item_names
    new_ids = ids or old_ids.extended(table.ids.to_list())
    found, _ = table.arranged(new_ids)
    if old is not None and old.width:
        before = pl.concat([old, old.clear(len(new_ids) - len(old_ids))])
        for column in before.get_columns():
            if column.name in found.columns:
                column = _merged(column, found[column.name])
            found = found.with_columns(column)
    return replace(dataset, split=dataset.split.with_item_ids(new_ids), item_names=found)


def _merged(old: pl.Series, new: pl.Series) -> pl.Series:
    """The new values, and the old ones where there is none, in the old type or a wider number."""
    numbers = old.dtype.is_numeric() and new.dtype.is_numeric()
    dtype = pl.Float64 if numbers and new.dtype.is_float() else old.dtype
    return new.cast(dtype, strict=False).fill_null(old.cast(dtype))


def item_notes(source: LogSource | None) -> list[str]:
    """Notes about the form of a table of items, for people to read."""
    if not isinstance(source, str | Path):
        return []
    tables = open_log(_opened(source)).tables
    return [f"{Path(source).name}: {note}" for table in tables for note in table.notes]


def _opened(source: LogSource) -> LogSource:
    """JSON as a data frame; anything else as it is."""
    suffix = Path(source).suffix.lower() if isinstance(source, str | Path) else ""
    if suffix not in (*JSON_LINES, JSON):
        return source
    path = Path(str(source))
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    with reading(str(path)):
        if suffix == JSON:
            return pl.read_json(path, infer_schema_length=None)
        return pl.read_ndjson(path, infer_schema_length=None)
