"""A log in memory, for what is fitted at once or added to a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ltocf.data.ingest.columns import LogColumns
from ltocf.data.ingest.log import Log, Reading
from ltocf.data.ingest.readers import LogSource
from ltocf.data.interactions import IdMap, Interactions, Rows
from ltocf.data.pair_store import TRAIN, UNLIKED, Pairs, merge_repeats, take


@dataclass(frozen=True)
class LogContents:
    """A log in memory: rows = interactions + below_threshold + duplicates + skipped."""

    interactions: Interactions
    unliked: Interactions | None  # pairs whose ratings are too low, with ids of their own
    columns: LogColumns
    rows: int
    below_threshold: int
    duplicates: int
    skipped: int
    notes: tuple[str, ...]


def read_log(
    source: LogSource,
    how: Reading | None = None,
    *,
    usual: Mapping[str, str] | None = None,
    **changes: Any,
) -> LogContents:
    """Read a file, a folder, a zip, '-' or a data frame; rows ascend by id.

    `changes` are fields of `Reading`, and `usual` are names that columns have if it has any called
    so. A pair that appears again is merged, at its first time.
    """
    log = Log.open(source, replace(how or Reading(), **changes), usual=usual)
    chunks = list(log.rows())
    rows: Pairs = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    (user_ids, user_rank), (item_ids, item_rank) = (codes.ranked() for codes in log.codes.values())
    rows |= {"user": user_rank[rows["user"]], "item": item_rank[rows["item"]]}
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
        log.count - log.skipped - log.below_threshold - len(interactions),
        log.skipped,
        tuple(log.notes()),
    )


def _interactions(pairs: Pairs, user_ids: pl.Series, item_ids: pl.Series) -> Interactions:
    """The pairs on those of the ids that they use."""
    users, items = _used(pairs["user"], user_ids), _used(pairs["item"], item_ids)
    rows = users.rows[pairs["user"]], items.rows[pairs["item"]]
    return Interactions(*rows, users.ids, items.ids, pairs.get("time"), pairs.get("weight"))


class _Used(NamedTuple):
    ids: IdMap
    rows: Rows  # by former row


def _used(rows: Rows, ids: pl.Series) -> _Used:
    used = np.bincount(rows, minlength=len(ids)) > 0
    return _Used(IdMap(ids.filter(pl.Series(used))), np.cumsum(used, dtype=np.int32) - 1)
