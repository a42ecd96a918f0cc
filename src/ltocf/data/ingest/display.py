"""What to show for an item beside its id: names and other columns of a table of items."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ltocf.data.ingest.columns import choose_item_column, id_expression
from ltocf.data.ingest.readers import open_parts, reading


def read_display(path: str | Path, ids: pl.Series, log_column: str) -> tuple[pl.DataFrame, int]:
    """A row for each of `ids`, in order, null where the table lacks it; and how many it lacks.

    The table's id column is the one called as in the log, or a guess; an id's first row counts.
    """
    key = ids.cast(pl.String).rename("id").to_frame()
    tables = []
    for part in open_parts(path):
        column = choose_item_column(part, log_column)
        others = [name for name in part.schema.names() if name != column]
        # A display column called 'id' would hide the data set's own.
        shown = [pl.col(name).alias("items_id" if name == "id" else name) for name in others]
        with reading(part.label):
            table = part.frame.select(id_expression(part, column).alias("id"), *shown)
            tables.append(table.join(key.lazy(), on="id", how="semi").collect(engine="streaming"))
    known = pl.concat(tables, how="vertical_relaxed").unique(
        "id", keep="first", maintain_order=True
    )
    display = key.join(known, on="id", how="left", maintain_order="left").drop("id")
    return display, len(ids) - known.height
