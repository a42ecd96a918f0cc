"""Ranked rows -> data frames with the caller's ids and what the data set has to display."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Rows
from ltocf.ranking.top_k import Ranked

OURS = {"user", "rank", "item", "similar", "score", "source", "contribution"}


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
    return table.hstack(shown.rename({n: f"item_{n}" for n in shown.columns if n in OURS}))
