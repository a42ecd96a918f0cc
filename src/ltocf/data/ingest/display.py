"""What to show for an item beside its id: names and other columns of a table of items."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ltocf.data.ingest.columns import choose_item_column
from ltocf.data.ingest.readers import LogSource, open_log, reading
from ltocf.data.ingest.values import id_expression


def read_display(source: LogSource, ids: pl.Series, log_column: str) -> tuple[pl.DataFrame, int]:
    """A row for each of `ids`, in order, null where the table lacks it; and how many it lacks.

    The table's id column is the one called as in the log, or a guess; an id's first row counts.
    """
    key = ids.cast(pl.String).rename("id").to_frame()
    tables = []
    for table in open_log(source).tables:
        column = choose_item_column(table, log_column)
        others = [name for name in table.schema.names() if name != column]
        # A display column called 'id' would hide the data set's own.
        shown = [pl.col(name).alias("items_id" if name == "id" else name) for name in others]
        with reading(table.label):
            rows = table.frame.select(id_expression(table, column).alias("id"), *shown)
            tables.append(rows.join(key.lazy(), on="id", how="semi").collect(engine="streaming"))
    known = pl.concat(tables, how="vertical_relaxed").unique(
        "id", keep="first", maintain_order=True
    )
    display = key.join(known, on="id", how="left", maintain_order="left").drop("id")
    return display, len(ids) - known.height


def display_notes(path: str | Path | None) -> list[str]:
    """What was found out about the form of a table of items."""
    if path is None:
        return []
    return [f"{Path(path).name}: {note}" for table in open_log(path).tables for note in table.notes]
