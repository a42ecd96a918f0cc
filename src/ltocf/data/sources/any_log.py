"""Turns any log that a caller may have into a Dataset."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ltocf.data.dataset import Dataset
from ltocf.data.dataset_files import MARKER
from ltocf.data.ingest.item_table import add_items
from ltocf.data.ingest.read_log import read_log
from ltocf.data.ingest.readers import LogSource
from ltocf.data.interactions import Interactions
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.sources.published import PUBLISHED
from ltocf.data.splits import no_split, placed
from ltocf.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from scipy import sparse

AnyLog: TypeAlias = (
    "str | Path | pl.DataFrame | pl.LazyFrame | pd.DataFrame | sparse.sparray | sparse.spmatrix"
    " | Interactions | Dataset"
)


def as_dataset(log: AnyLog, *, items: LogSource | None = None, **columns: Any) -> Dataset:
    """A prepared data set as it is; anything else with all of its pairs in train. `items` is a
    table of items and their attributes; all of them become items, touched or not.

    `columns` are the fields of `Reading` (user, item, time, rating, threshold and so on) and go
    with a file or a data frame. A sparse matrix has users as rows, items as columns, and their
    numbers as ids.
    """
    dataset = _without_items(log, columns)
    if items is None:
        return dataset
    column = dataset.origin.get("columns", {}).get("item", "item")
    return add_items(dataset, items, column)


def _without_items(log: AnyLog, columns: dict[str, Any]) -> Dataset:
    from scipy import sparse

    given = {name: value for name, value in columns.items() if value is not None}
    if _is_prepared(log) or isinstance(log, Dataset | Interactions) or sparse.issparse(log):
        if given:
            first = next(iter(given))
            raise ConfigError(f"{first}= goes with a file or a data frame, not with this log")
        return _typed(log)
    contents = read_log(log, **given)  # type: ignore[arg-type]
    name = Path(log).stem if isinstance(log, str | Path) else "log"
    times = {"form": contents.time_form, "order": contents.time_order}
    columns = {"columns": asdict(contents.columns), "options": given, "times": times}
    liked, unliked = contents.interactions, contents.unliked
    if unliked is not None:
        unliked = placed(unliked, liked.user_ids, liked.item_ids)
    split = no_split(liked, unliked)
    return Dataset(name, split, origin={"source": name, **columns})


def _is_prepared(log: AnyLog) -> bool:
    if not isinstance(log, str | Path):
        return False
    known = str(log) in ("town", *PUBLISHED)
    return known or any((Path(log) / name).is_file() for name in (MARKER, "train.txt"))


def _typed(log: Any) -> Dataset:
    if isinstance(log, Dataset):
        return log
    if isinstance(log, str | Path):
        return load_dataset(log)
    pairs = log if isinstance(log, Interactions) else _from_matrix(log)
    return Dataset("log", no_split(pairs), origin={"source": "log"})


def _from_matrix(matrix: Any) -> Interactions:
    """Every entry that is not zero is an interaction; values are not used otherwise."""
    if matrix.ndim != 2:
        raise DataError(f"expected a matrix of users by items, got {matrix.ndim} dimension(s)")
    from scipy import sparse

    entries = sparse.coo_array(matrix)
    if not np.isfinite(entries.data).all():
        raise DataError("the matrix holds values that are not finite; give 1 for each interaction")
    entries.sum_duplicates()
    kept = entries.data != 0
    if not kept.any():
        raise DataError(f"the matrix of shape {matrix.shape} holds no interaction")
    users, items = (axis[kept].astype(np.int64) for axis in (entries.row, entries.col))
    return Interactions.build(users, items, *matrix.shape)
