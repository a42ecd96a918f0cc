"""From a log of any size to a data set directory, in memory that does not grow with its rows."""

from __future__ import annotations

import shutil
import time as clock
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from ltocf.data.dataset_files import MARKER, write_dataset
from ltocf.data.ingest.display import display_notes, read_display
from ltocf.data.ingest.log import REASONS, Log, Reading
from ltocf.data.ingest.readers import LogSource
from ltocf.data.ingest.report import PrepareReport
from ltocf.data.pair_columns import ColumnFiles
from ltocf.data.pair_cuts import (
    SPLIT_KINDS,
    SplitKind,
    Unknown,
    check_fraction,
    cut_test,
    cut_validation,
    drop_rare,
    drop_unknown,
    refuse_empty,
)
from ltocf.data.pair_store import (
    OPTIONAL_TYPES,
    PARTS,
    TEST,
    TRAIN,
    Counts,
    Pairs,
    PairStore,
    merge_repeats,
    take,
)
from ltocf.data.row_arrays import Rows
from ltocf.errors import ConfigError, DataError
from ltocf.files import new_directory
from ltocf.progress import Progress, silent

CHUNK_ROWS = 1_000_000
CODED = {"user": np.uint32, "item": np.uint32, "part": np.uint8}


@dataclass(frozen=True)
class Recipe(Reading):
    """What is done to a log: how it is read, what is left out, how it is split."""

    min_user: int = 1  # interactions that each user, and each item, must have left: a k-core
    min_item: int = 1
    split: SplitKind = "ratio"
    ratio: float = 0.8  # the share of train
    unknown: Unknown = "drop"  # what is done with given test pairs that train does not know
    validation: float = 0.0  # the share of train that is held out for validation
    seed: int = 0

    def check(self) -> None:
        super().check()
        for name, choices in (("split", SPLIT_KINDS), ("unknown", get_args(Unknown))):
            if (value := getattr(self, name)) not in choices:
                raise ConfigError(
                    f"{name} = {value!r} is no choice; choose one of: {', '.join(choices)}"
                )
        check_fraction("ratio", self.ratio)
        if self.validation:
            check_fraction("validation", self.validation)
        for name, count in (("min_user", self.min_user), ("min_item", self.min_item)):
            if count < 1:
                raise ConfigError(f"{name} must be at least 1, got {count!r}")


def prepare(
    source: LogSource,
    output: str | Path,
    recipe: Recipe | None = None,
    *,
    test: LogSource | None = None,
    names: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> PrepareReport:
    """Write the data set directory `output`, whole or not at all, from whatever `open_log` takes.

    `test` is a log of test pairs with the same columns; the split is then the given one. `names` is
    a table of items with columns to display, in any form that a log may have.
    """
    recipe = recipe or Recipe()
    if test is not None:
        recipe = replace(recipe, split="given")
    elif recipe.split == "given":
        raise ConfigError("the split 'given' needs a log of test pairs; pass test= (--test)")
    recipe.check()
    started = clock.monotonic()
    with new_directory(output, marker=MARKER, overwrite=overwrite) as temporary:
        log = Log.open(source, recipe)
        logs = (
            [log] if test is None else [log, Log.open(test, _same_columns(log, recipe), like=log)]
        )
        work = temporary / "work"
        work.mkdir()
        store, user_ids, item_ids = _load(logs, work, progress)
        dropped = _reduce(store, recipe, progress)
        progress("writing", 0, None)
        users, items = _remaining(store, user_ids, item_ids)
        table, unnamed = _item_table(items.ids, names or log.items, log.columns.item)
        counts = write_dataset(
            temporary,
            Path(output).resolve().name,
            recipe.split,
            {name: _part(store, part, users, items) for part, name in enumerate(PARTS)},
            users.ids,
            table,
            origin={
                "source": log.label,
                "columns": asdict(log.columns),
                "options": asdict(recipe),
                **(read := _counts(logs)),
                "dropped": dropped,
            },
        )
        shutil.rmtree(work)
        shown = display_notes(names or log.items)
    return PrepareReport(
        output=str(output),
        columns=log.columns,
        notes=tuple(dict.fromkeys([*(n for log in logs for n in log.notes()), *shown])),
        skipped_reasons=tuple(reason for log in logs for reason in log.reasons)[:REASONS],
        **read,
        **dropped,
        split=recipe.split,
        counts=counts,
        unnamed_items=unnamed,
        seconds=clock.monotonic() - started,
    )


def _counts(logs: list[Log]) -> dict[str, int]:
    return {
        "rows": sum(log.count for log in logs),
        "skipped": sum(log.skipped for log in logs),
        "below_threshold": sum(log.below_threshold for log in logs),
    }


def _same_columns(log: Log, recipe: Recipe) -> Recipe:
    columns = {role: name for role, name in asdict(log.columns).items() if role != "guessed"}
    return replace(recipe, **columns)


def _reduce(store: PairStore, recipe: Recipe, progress: Progress) -> dict[str, int]:
    """Merge, leave out and split; returns how many pairs were left out, and why."""
    dropped = {}
    progress("merging repeats", 0, None)
    repeats = recipe.repeats or "sum"
    dropped["duplicates"] = store.rewrite(lambda p: merge_repeats(p, store.n_items, repeats))
    progress("counting", 0, None)
    dropped["too_few"] = drop_rare(store, recipe.min_user, recipe.min_item)
    progress("splitting", 0, None)
    if recipe.split == "given":
        dropped["unknown_to_train"] = _meet(store, recipe.unknown)
    else:
        dropped["unknown_to_train"] = cut_test(store, recipe.split, recipe.ratio, recipe.seed)
    if recipe.validation:
        cut_validation(store, recipe.validation, recipe.seed)
    return dropped


def _meet(store: PairStore, unknown: Unknown) -> int:
    """Leave out given test pairs that train does not know, or not; returns how many."""
    lost = 0 if unknown == "keep" else drop_unknown(store)
    if lost and unknown == "error":
        raise DataError(
            f"{lost:,} test interactions have a user or item that is not in train; "
            "drop them with unknown='drop' or keep them with unknown='keep' (--unknown)"
        )
    refuse_empty(store)
    return lost


@dataclass(frozen=True)
class Side:
    """The users or the items that are left: their ids, and the row of each former row, or -1."""

    ids: pl.Series
    rows: Rows


def _load(
    logs: list[Log], work: Path, progress: Progress
) -> tuple[PairStore, pl.Series, pl.Series]:
    """The logs' pairs in a store on disk, numbered in the order of their ids, and the ids."""
    log = logs[0]
    optional = {"time": log.columns.time is not None, "weight": log.how.weighted}
    names = [name for name, wanted in optional.items() if wanted]
    spill = ColumnFiles(work / "rows", CODED | {name: OPTIONAL_TYPES[name] for name in names})
    for part, source in zip((TRAIN, TEST), logs, strict=False):
        total = source.known_rows()
        for rows in source.rows(part):
            spill.append(rows)
            progress("reading", source.count, total)
    progress("sorting", 0, None)
    (user_ids, user_rank), (item_ids, item_rank) = (codes.ranked() for codes in log.codes.values())

    def renumbered() -> Iterator[Pairs]:
        for chunk in spill.chunks(CHUNK_ROWS):
            ranks = {"user": user_rank[chunk["user"]], "item": item_rank[chunk["item"]]}
            yield chunk | ranks

    counts: Counts = np.zeros(len(user_ids), dtype=np.int64)
    for chunk in spill.chunks(CHUNK_ROWS):
        counts += np.bincount(user_rank[chunk["user"]], minlength=len(counts))
    store = PairStore.on_disk(work, counts, len(item_ids), renumbered(), names)
    spill.remove()
    return store, user_ids, item_ids


def _remaining(store: PairStore, user_ids: pl.Series, item_ids: pl.Series) -> tuple[Side, Side]:
    users, items = (
        Side(
            ids.filter(pl.Series(degrees > 0)),
            np.where(degrees > 0, np.cumsum(degrees > 0) - 1, -1).astype(np.int32),
        )
        for ids, degrees in zip((user_ids, item_ids), store.liked_degrees(), strict=True)
    )
    return users, items


def _part(store: PairStore, part: int, users: Side, items: Side) -> Iterator[Pairs]:
    """One part's pairs, bucket by bucket, renumbered; without those that nothing liked is of."""
    for pairs in store.read():
        chosen = take(pairs, np.flatnonzero(pairs.pop("part") == part))
        chosen["user"], chosen["item"] = users.rows[chosen["user"]], items.rows[chosen["item"]]
        yield take(chosen, (chosen["user"] >= 0) & (chosen["item"] >= 0))


def _item_table(
    ids: pl.Series, names: str | Path | None, log_column: str
) -> tuple[pl.DataFrame, int | None]:
    """The items with what to display of them, and how many the table of names does not know."""
    if names is None:
        return ids.rename("id").to_frame(), None
    display, unnamed = read_display(names, ids, log_column)
    return ids.rename("id").to_frame().hstack(display), unnamed
