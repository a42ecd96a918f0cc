"""From a log of any size to a data set directory, in memory that does not grow with its rows."""

from __future__ import annotations

import shutil
import time as clock
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ltocf.data.dataset import MARKER, PARTS, describe
from ltocf.data.ingest.column_files import ColumnFiles
from ltocf.data.ingest.display import read_display
from ltocf.data.ingest.log import Log
from ltocf.data.ingest.pair_cuts import SPLITS, SplitName, cut_test, cut_validation, thin
from ltocf.data.ingest.pair_store import PairStore, merge_repeats
from ltocf.data.ingest.readers import LogSource
from ltocf.data.ingest.report import Report
from ltocf.data.interactions import Rows
from ltocf.data.splits import check_fraction
from ltocf.errors import ConfigError
from ltocf.files import new_directory

CHUNK_ROWS = 1_000_000
CODED = {"user": np.uint32, "item": np.uint32}
CODED_TIMED = {**CODED, "time": np.int64}
Progress = Callable[[str, int, int | None], None]  # stage, done, and the total if it is known


@dataclass(frozen=True)
class Recipe:
    """What is done to a log: its columns by name or guess, what is left out, how it is split."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    rating: str | None = None
    threshold: float | None = None  # rows with a lower rating, or none, are left out
    separator: str | None = None
    min_user: int = 1  # interactions that each user, and each item, must have left: a k-core
    min_item: int = 1
    split: SplitName = "ratio"
    ratio: float = 0.8  # the share of train
    valid: float = 0.0  # the share of train that is held out for validation
    seed: int = 0

    def check(self) -> None:
        if self.split not in SPLITS:
            raise ConfigError(f"unknown split {self.split!r}; choose one of: {', '.join(SPLITS)}")
        check_fraction("ratio", self.ratio)
        if self.valid:
            check_fraction("valid", self.valid)
        for name, value in (("min_user", self.min_user), ("min_item", self.min_item)):
            if value < 1:
                raise ConfigError(f"{name} must be at least 1, got {value!r}")

    def open(self, source: LogSource) -> Log:
        names = ("user", "item", "time", "rating", "threshold", "separator")
        return Log.open(source, **{name: getattr(self, name) for name in names})


def prepare(
    source: LogSource,
    output: str | Path,
    recipe: Recipe | None = None,
    *,
    names: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = lambda stage, done, total: None,
) -> Report:
    """Write the data set directory `output`, whole or not at all, from a file, folder or frame.

    `names` is a table of items with columns to display, in any form that a log may have.
    """
    recipe = recipe or Recipe()
    recipe.check()
    started = clock.monotonic()
    log = recipe.open(source)
    with new_directory(output, marker=MARKER, overwrite=overwrite) as temporary:
        work = temporary / "work"
        work.mkdir()
        store, user_ids, item_ids = _load(log, work, progress)
        dropped = {"below_threshold": log.below_threshold, **_reduce(store, recipe, progress)}
        progress("writing", 0, None)
        users, items = _remaining(store, user_ids, item_ids)
        counts, fingerprint = _write(temporary, store, users, items)
        shutil.rmtree(work)
        unnamed = _write_ids(temporary, users.ids, items.ids, names, log.columns.item)
        origin = {
            "source": log.label,
            "columns": asdict(log.columns),
            "options": asdict(recipe),
            "rows": log.rows,
            "dropped": dropped,
        }
        name = Path(output).resolve().name
        description = describe(name, recipe.split, counts, fingerprint, origin)
        (temporary / MARKER).write_text(description, encoding="utf-8")
    return Report(
        output=str(output),
        columns=log.columns,
        rows=log.rows,
        **dropped,
        counts=counts,
        unnamed_items=unnamed,
        seconds=clock.monotonic() - started,
    )


def _reduce(store: PairStore, recipe: Recipe, progress: Progress) -> dict[str, int]:
    """Merge, thin and split; returns how many pairs were left out, and why."""
    dropped = {}
    progress("merging repeats", 0, None)
    dropped["duplicates"] = store.rewrite(lambda pairs: merge_repeats(pairs, store.n_items))
    progress("counting", 0, None)
    dropped["too_few"] = thin(store, recipe.min_user, recipe.min_item)
    progress("splitting", 0, None)
    dropped["unknown_to_train"] = cut_test(store, recipe.split, recipe.ratio, recipe.seed)
    if recipe.valid:
        cut_validation(store, recipe.valid, recipe.seed)
    return dropped


@dataclass(frozen=True)
class Side:
    """The users or the items that are left: their ids, and the row of each former row."""

    ids: pl.Series
    rows: Rows


def _load(log: Log, work: Path, progress: Progress) -> tuple[PairStore, pl.Series, pl.Series]:
    """The log's pairs in a store on disk, numbered in the order of their ids, and the ids."""
    timed = log.columns.time is not None
    spill = ColumnFiles(work / "rows", CODED_TIMED if timed else CODED)
    total = log.known_rows()
    for batch in log.batches():
        times = {} if batch.times is None else {"time": batch.times}
        spill.append({"user": batch.users, "item": batch.items, **times})
        progress("reading", log.rows, total)
    progress("sorting", 0, None)
    (user_ids, user_rank), (item_ids, item_rank) = log.ranked("user"), log.ranked("item")
    counts = np.zeros(len(user_ids), dtype=np.int64)
    for chunk in spill.chunks(CHUNK_ROWS):
        counts += np.bincount(user_rank[chunk["user"]], minlength=len(counts))
    store = PairStore(work, counts, len(item_ids), timed=timed)
    store.fill(
        {**chunk, "user": user_rank[chunk["user"]], "item": item_rank[chunk["item"]]}
        for chunk in spill.chunks(CHUNK_ROWS)
    )
    spill.remove()
    return store, user_ids, item_ids


def _remaining(store: PairStore, user_ids: pl.Series, item_ids: pl.Series) -> tuple[Side, Side]:
    counts = (degrees.sum(axis=0) for degrees in store.degrees())
    users, items = (
        Side(ids.filter(pl.Series(degrees > 0)), np.cumsum(degrees > 0, dtype=np.int32) - 1)
        for ids, degrees in zip((user_ids, item_ids), counts, strict=True)
    )
    return users, items


def _write(
    directory: Path, store: PairStore, users: Side, items: Side
) -> tuple[dict[str, int], str]:
    """Write the parts of the split; returns all counts, and train's fingerprint."""
    digests = {
        name: store.write(part, directory / f"{name}.parquet", users.rows, items.rows)
        for part, name in enumerate(PARTS)
    }
    counts = {"users": len(users.ids), "items": len(items.ids)}
    counts |= {name: digest.length for name, digest in digests.items()}
    return counts, digests["train"].fingerprint(counts["users"], counts["items"])


def _write_ids(
    directory: Path,
    user_ids: pl.Series,
    item_ids: pl.Series,
    names: str | Path | None,
    log_column: str,
) -> int | None:
    """Write the id tables; returns how many items the table of names does not know."""
    user_ids.to_frame().write_parquet(directory / "users.parquet")
    items, unnamed = item_ids.to_frame(), None
    if names is not None:
        display, unnamed = read_display(names, item_ids, log_column)
        items = items.hstack(display)
    items.write_parquet(directory / "items.parquet")
    return unnamed
