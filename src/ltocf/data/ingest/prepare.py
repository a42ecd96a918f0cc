"""From a log of any size to a data set directory, in memory that does not grow with its rows."""

from __future__ import annotations

import shutil
import time as clock
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ltocf.data.dataset_files import MARKER, write_dataset
from ltocf.data.ids import shorten_id
from ltocf.data.ingest.byte_files import STANDARD_INPUT, log_digest
from ltocf.data.ingest.columns import LogColumns
from ltocf.data.ingest.item_table import describe_items, item_notes
from ltocf.data.ingest.log import REASONS, Log
from ltocf.data.ingest.parts import ReadRows, read_in_parts
from ltocf.data.ingest.readers import LogSource
from ltocf.data.ingest.recipe import Reading
from ltocf.data.ingest.recipe import Recipe as Recipe
from ltocf.data.pairs.columns import ColumnFiles
from ltocf.data.pairs.cuts import SplitKind, cut_test, cut_validation, refuse_empty
from ltocf.data.pairs.store import (
    OPTIONAL_TYPES,
    REST,
    SUBSETS,
    TEST,
    TRAIN,
    Counts,
    Pairs,
    PairStore,
    merge_repeats,
    settle,
    take,
)
from ltocf.data.pairs.thinning import PairRenumbering, cap_users, drop_rare, meet_unknown
from ltocf.errors import ConfigError
from ltocf.progress import Progress, silent
from ltocf.storage.files import new_directory

CHUNK_ROWS = 1_000_000
CODED = {"user": np.uint32, "item": np.uint32, "subset": np.uint8}

MOST_PROCESSES = 128  # each takes some hundred megabytes


@dataclass(frozen=True)
class PrepareReport:
    """The counts of one `prepare`; `lines` are for people, `to_dict` is for programs."""

    output: str
    columns: LogColumns
    notes: tuple[str, ...]  # what was detected about the log's form
    rows: int
    skipped: int  # rows that cannot be read
    skipped_reasons: tuple[str, ...]  # the first of them
    below_threshold: int
    returns: int  # rows that take something back
    passed_over: int  # rows of a kind with weight 0
    duplicates: int
    taken_back: int  # pairs of which nothing is left after returns, or that were hidden
    over_the_cap: int  # pairs of users who have more than asked for
    too_few: int  # pairs of users or items with fewer interactions than asked for
    unknown_to_train: int  # test pairs of users or items that train does not know
    split: SplitKind
    counts: dict[str, int]
    unnamed_items: int | None  # items that are not in the table of items
    seconds: float
    untouched_items: int = 0  # items of the table that nobody has touched

    @property
    def density(self) -> float:
        pairs = self.counts["train"] + self.counts["valid"] + self.counts["test"]
        return pairs / (self.counts["users"] * self.counts["items"])

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "density": self.density}

    def lines(self) -> list[str]:
        """A line for each count that is not zero."""
        counts = self.counts
        dropped = {
            "rows that cannot be read": self.skipped,
            "rows of a kind that counts 0": self.passed_over,
            "repeated pair, merged": self.duplicates,
            "taken back or hidden": self.taken_back,
            "beyond the latest that were asked for of a user (--max-user)": self.over_the_cap,
            "user or item with too few interactions": self.too_few,
            "test pairs whose user or item train does not know; 'ltocf refit' learns them too": (
                self.unknown_to_train
            ),
        }
        return [
            *self.notes,
            f"columns: {self.columns.describe()}",
            f"read: {self.rows:,} rows",
            *(f"left out: {count:,} ({why})" for why, count in dropped.items() if count),
            *(f"  {reason}" for reason in self.skipped_reasons),
            *self._not_liked(),
            f"kept: {counts['users']:,} users x {counts['items']:,} items, "
            f"density {self.density:.4%}",
            self._split(),
            *(
                [f"items of the catalogue that nobody touched yet: {self.untouched_items:,}"]
                if self.untouched_items
                else []
            ),
            *([f"without a name: {self.unnamed_items:,} items"] if self.unnamed_items else []),
            f"written to {self.output} in {self.seconds:.1f} s",
        ]

    def _not_liked(self) -> list[str]:
        if not self.below_threshold:
            return []
        return [
            f"not liked: {self.below_threshold:,} rows with a rating below the threshold or none; "
            f"{self.counts['unliked']:,} pairs are kept as seen, to be neither learned nor "
            "recommended"
        ]

    def _split(self) -> str:
        if self.split == "none":
            return f"split: none, all {self.counts['train']:,} train and nothing is left to test"
        subsets = ", ".join(
            f"{subset} {self.counts[subset]:,}" for subset in ("train", "valid", "test")
        )
        return f"split: {subsets} ({self.split})"


def prepare(
    source: LogSource,
    output: str | Path,
    recipe: Recipe | None = None,
    *,
    test: LogSource | None = None,
    names: LogSource | None = None,
    processes: int = 1,
    overwrite: bool = False,
    progress: Progress = silent,
) -> PrepareReport:
    """Write the data set directory `output`, whole or not at all, from whatever `open_log` takes.

    A log of several files is read by up to so many `processes`, each a share of the files, with the
    same result to the last byte; memory grows with them. They are spawned: a script that asks for
    several keeps to `if __name__ == "__main__":`.

    `test` is a log of test pairs with the same columns; the split is then the given one. `names` is
    a table of items with their attributes, in any form that a log may have or as JSON lines; all of
    them become items of the data set, touched or not.
    """
    recipe = recipe or Recipe()
    if test is not None:
        recipe = replace(recipe, split="given")
    elif recipe.split == "given":
        raise ConfigError("the split 'given' needs a log of test pairs; pass test= (--test)")
    recipe.check()
    if not 1 <= processes <= MOST_PROCESSES:
        raise ConfigError(f"processes = {processes}: must be from 1 to {MOST_PROCESSES}")
    started = clock.monotonic()
    with new_directory(output, marker=MARKER, overwrite=overwrite) as temporary:
        log = Log.open(source, recipe)
        logs = (
            [log] if test is None else [log, Log.open(test, _same_columns(log, recipe), like=log)]
        )
        work = temporary / "work"
        work.mkdir()
        store, user_ids, item_ids, busiest = _load(logs, work, processes, progress)
        dropped = _reduce(store, recipe, processes, progress)
        progress("writing", 0, None)
        rows = _remaining(store, user_ids, item_ids)
        table, unnamed = describe_items(rows.items.ids, names, log.items, log.columns.item)
        counts = write_dataset(
            temporary,
            Path(output).resolve().name,
            recipe.split,
            {
                name: _subset(store, subset, rows, weighted=recipe.weighted)
                for subset, name in enumerate(SUBSETS)
            },
            rows.users.ids,
            table,
            origin={
                "source": log.label,
                **_where(source),
                "logs": [digest for each in (source, test) if (digest := log_digest(each))],
                "columns": asdict(log.columns),
                "options": asdict(recipe),
                **(read := _counts(logs)),
                "dropped": dropped,
                "times": {"form": log.time_form, "order": log.time_order},
            },
            rest=_rest(store, user_ids, item_ids, weighted=recipe.weighted),
        )
        shutil.rmtree(work)
        shown = item_notes(log.items if names is None else names)
    return PrepareReport(
        output=str(output),
        columns=log.columns,
        notes=tuple(dict.fromkeys([*(n for log in logs for n in log.notes()), *shown, *busiest])),
        skipped_reasons=tuple(reason for log in logs for reason in log.reasons)[:REASONS],
        **read,
        **dropped,
        split=recipe.split,
        counts=counts,
        unnamed_items=unnamed,
        untouched_items=table.height - len(rows.items.ids),
        seconds=clock.monotonic() - started,
    )


def _where(source: LogSource) -> dict[str, str]:
    """The absolute path of a log, so that it is recognised from any working directory."""
    on_disk = isinstance(source, str | Path) and str(source) != STANDARD_INPUT
    return {"path": str(Path(source).resolve())} if on_disk else {}  # type: ignore[arg-type]


def _counts(logs: list[Log]) -> dict[str, int]:
    return {
        "rows": sum(log.count for log in logs),
        "skipped": sum(log.skipped for log in logs),
        "below_threshold": sum(log.below_threshold for log in logs),
        "returns": sum(log.returns for log in logs),
        "passed_over": sum(log.passed_over for log in logs),
    }


def _same_columns(log: Log, recipe: Recipe) -> Recipe:
    columns: dict[str, Any] = {
        role: name for role, name in log.columns.names().items() if role != "quantity"
    }
    return replace(recipe, **columns)


def _reduce(store: PairStore, recipe: Recipe, processes: int, progress: Progress) -> dict[str, int]:
    """Merge, leave out and split; returns how many pairs were left out, and why."""
    dropped = {}
    progress("merging repeats", 0, None)
    repeats = recipe.repeats or "sum"
    dropped["duplicates"] = store.rewrite(
        lambda pairs: merge_repeats(pairs, store.n_items, repeats), at_once=processes
    )
    dropped["taken_back"] = store.rewrite(settle, at_once=processes)
    progress("counting", 0, None)
    dropped["over_the_cap"] = (
        cap_users(store, recipe.max_user, recipe.seed) if recipe.max_user is not None else 0
    )
    dropped["too_few"] = drop_rare(store, recipe.min_user, recipe.min_item)
    progress("splitting", 0, None)
    if recipe.split == "given":
        dropped["unknown_to_train"] = meet_unknown(store, recipe.unknown)
        refuse_empty(store)
    else:
        how = recipe.split, recipe.ratio, recipe.seed, recipe.unknown
        dropped["unknown_to_train"] = cut_test(store, *how)
    if recipe.validation:
        cut_validation(store, recipe.validation, recipe.seed)
    return dropped


def _load(
    logs: list[Log], work: Path, processes: int, progress: Progress
) -> tuple[PairStore, pl.Series, pl.Series, list[str]]:
    """The logs' pairs in a store on disk, numbered in the order of their ids; the ids; and what to
    say of the user with the most rows."""
    log = logs[0]
    optional = {"time": log.columns.time is not None, "weight": log.counts_amounts}
    names = [name for name, wanted in optional.items() if wanted]
    types = CODED | {name: OPTIONAL_TYPES[name] for name in names}
    read: list[ColumnFiles | ReadRows] = []
    for subset, source in zip((TRAIN, TEST), logs, strict=False):
        total, path = source.known_rows(), work / f"rows-{subset}"
        if min(processes, len(source.tables)) > 1:
            read += read_in_parts(source, subset, processes, path, types, total, progress)
            continue
        spill = ColumnFiles(path, types)
        for rows in source.rows(subset):
            spill.append(rows)
            progress("reading", source.count, total)
        read.append(spill)
    progress("sorting", 0, None)
    (user_ids, user_rank), (item_ids, item_rank) = (codes.ranked() for codes in log.codes.values())

    def chunks() -> Iterator[Pairs]:
        return (chunk for files in read for chunk in files.chunks(CHUNK_ROWS))

    def renumbered() -> Iterator[Pairs]:
        for chunk in chunks():
            ranks = {"user": user_rank[chunk["user"]], "item": item_rank[chunk["item"]]}
            yield chunk | ranks

    counts: Counts = np.zeros(len(user_ids), dtype=np.int64)
    for chunk in chunks():
        counts += np.bincount(user_rank[chunk["user"]], minlength=len(counts))
    store = PairStore.on_disk(work, counts, len(item_ids), renumbered(), names)
    for files in read:
        files.remove()
    return store, user_ids, item_ids, _busiest(counts, user_ids, log.how)


def _busiest(counts: Counts, user_ids: pl.Series, recipe: Reading) -> list[str]:
    """A note about a user with so many rows that it may be a program, or a shop's own account."""
    most, rows = int(counts.max()), int(counts.sum())
    capped = getattr(recipe, "max_user", None) is not None
    if capped or not (most >= 10_000 or (most >= 1_000 and most >= 0.01 * rows)):
        return []
    name = shorten_id(user_ids[int(counts.argmax())])
    return [
        f"user {name} has {most:,} of the {rows:,} rows; max_user=500 (--max-user 500) keeps the "
        "latest 500 items of everybody"
    ]


def _remaining(store: PairStore, user_ids: pl.Series, item_ids: pl.Series) -> PairRenumbering:
    users, items = store.liked_degrees()
    return PairRenumbering.of(user_ids, item_ids, users > 0, items > 0)


def _subset(
    store: PairStore, subset: int, rows: PairRenumbering, *, weighted: bool
) -> Iterator[Pairs]:
    """One subset's pairs, bucket by bucket, renumbered; users and items without a like are left
    out."""
    for pairs in store.read():
        if not weighted:  # quantities were read only to find returns
            pairs.pop("weight", None)
        yield rows.pairs(pairs, subset)


def _rest(
    store: PairStore, user_ids: pl.Series, item_ids: pl.Series, *, weighted: bool
) -> pl.DataFrame:
    """The pairs whose user or item train does not know, with their ids."""
    tables = []
    for pairs in store.read():
        chosen = take(pairs, np.flatnonzero(pairs.pop("subset") == REST))
        ids = {"user": user_ids.gather(chosen["user"]), "item": item_ids.gather(chosen["item"])}
        more = ("time", *(("weight",) if weighted else ()))
        tables.append(pl.DataFrame(ids | {name: chosen[name] for name in more if name in chosen}))
    return pl.concat(tables)
