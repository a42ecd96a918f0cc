"""Which columns hold dates, and whether one of them says when each row happened."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from ltocf.data.ingest.columns import LogColumns
from ltocf.data.ingest.readers import EXTRA, Table, reading

DATE = r"^\s*\d{1,4}[-./]\d{1,2}[-./]\d{1,4}"
SAMPLE_ROWS = 100  # to see what a column holds
ROWS_COMPARED = 20_000  # to see whether its dates belong to rows, or to users or items
FEWEST = 10  # users, and items, that come twice among those rows


def columns_of_dates(table: Table, used: Collection[str]) -> list[str]:
    """The columns that are not used yet and whose first values are all dates."""
    names = [name for name in table.schema.names() if name not in used and name != EXTRA]
    with reading(table.label):
        sample = table.frame.select(names).head(SAMPLE_ROWS).collect()
    return [name for name in names if _holds_dates(sample[name].drop_nulls())]


def _holds_dates(values: pl.Series) -> bool:
    if isinstance(values.dtype, pl.Date | pl.Datetime):
        return True
    is_text = values.dtype == pl.String and len(values) > 0
    return is_text and bool(values.str.contains(DATE).all())


def column_of_moments(table: Table, columns: LogColumns) -> str | None:
    """The only column of dates, if it says when something happened: most users, and most items,
    that come twice do so on different dates. A birthday belongs to a user, and the day on which a
    film came out to an item."""
    dated = columns_of_dates(table, set(columns.names().values()))
    if len(dated) != 1:
        return None
    (name,) = dated
    with reading(table.label):
        rows = table.frame.select([columns.user, columns.item, name]).head(ROWS_COMPARED).collect()
    differ = all(_differ(rows, by, name) for by in (columns.user, columns.item))
    return name if differ else None


def _differ(rows: pl.DataFrame, by: str, name: str) -> bool:
    counted = rows.group_by(by).agg(rows=pl.len(), dates=pl.col(name).n_unique())
    twice = counted.filter(pl.col("rows") > 1)
    return len(twice) >= FEWEST and 2 * int((twice["dates"] > 1).sum()) > len(twice)
