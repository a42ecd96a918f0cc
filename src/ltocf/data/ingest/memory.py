"""A log in memory, for what is fitted at once or added to a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.ingest.columns import LogColumns
from ltocf.data.ingest.log import Log, Reading
from ltocf.data.ingest.readers import LogSource
from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.pair_store import TRAIN, UNLIKED, Pairs, merge_repeats, take


@dataclass(frozen=True)
class LogContents:
    """A log in memory: rows = interactions + below_threshold + duplicates + skipped."""

    interactions: Interactions
    unliked: Interactions | None  # pairs whose ratings are too low, of users and items that count
    columns: LogColumns
    rows: int
    below_threshold: int
    duplicates: int
    skipped: int
    notes: tuple[str, ...]


def read_log(source: LogSource, how: Reading | None = None, **changes: Any) -> LogContents:
    """Read a file, a folder, a zip, '-' or a data frame; rows ascend by id.

    `changes` are fields of `Reading`. A pair that appears again is merged, at its first time.
    """
    log = Log.open(source, replace(how or Reading(), **changes))
    chunks = list(log.rows())
    rows: Pairs = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    liked = rows["part"] == TRAIN
    users, user_ids = _rows_of(log, "user", rows["user"], liked)
    items, item_ids = _rows_of(log, "item", rows["item"], liked)
    known = (users >= 0) & (items >= 0)
    rows = take(rows | {"user": users, "item": items}, known)
    pairs = merge_repeats(rows, len(item_ids), log.how.repeats or "sum")
    interactions, unliked = (
        _interactions(take(pairs, pairs["part"] == part), user_ids, item_ids)
        for part in (TRAIN, UNLIKED)
    )
    return LogContents(
        interactions,
        unliked if len(unliked) else None,
        log.columns,
        log.count,
        log.below_threshold,
        int(np.count_nonzero(liked)) - len(interactions),
        log.skipped,
        tuple(log.notes()),
    )


def _rows_of(
    log: Log, role: str, codes: NDArray[np.uint32], liked: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], IdMap]:
    """The codes as rows among the ids that somebody likes or that like, ascending; -1 elsewhere."""
    ids, rank = log.codes[role].ranked()
    ranks = rank[codes]
    used = np.bincount(ranks[liked], minlength=len(ids)) > 0
    row_of_rank = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
    return row_of_rank[ranks], IdMap(ids.filter(pl.Series(used)))


def _interactions(pairs: Pairs, user_ids: IdMap, item_ids: IdMap) -> Interactions:
    rows = pairs["user"], pairs["item"]
    return Interactions(*rows, user_ids, item_ids, pairs.get("time"), pairs.get("weight"))
