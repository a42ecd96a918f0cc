"""A log in memory, for what is fitted at once or added to a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ltocf.data.ingest.columns import LogColumns
from ltocf.data.ingest.log import Log
from ltocf.data.ingest.readers import LogSource
from ltocf.data.ingest.recipe import Reading
from ltocf.data.interactions import Interactions
from ltocf.data.pairs.store import (
    LEAST_WEIGHT,
    TRAIN,
    UNLIKED,
    Mask,
    Pairs,
    merge_repeats,
    settle,
    take,
)
from ltocf.data.pairs.thinning import PairRenumbering
from ltocf.data.times import TimeForm


@dataclass(frozen=True)
class LogContents:
    """A log in memory. Rows that are not interactions were skipped, below the threshold, merged
    with others, passed over, or take something back."""

    interactions: Interactions
    unliked: Interactions | None  # pairs whose ratings are too low, with ids of their own
    columns: LogColumns
    rows: int
    below_threshold: int
    duplicates: int
    skipped: int
    notes: tuple[str, ...]
    # What the log takes back of pairs that it does not have itself, and how much of each.
    taken: Interactions | None = None
    time_form: TimeForm | None = None
    time_order: str | None = None


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
    back = {name: column.copy() for name, column in take(pairs, _taken_back(pairs)).items()}
    pairs = settle(pairs)
    if not log.weighted:  # quantities were read only to find returns
        pairs.pop("weight", None)
    interactions, unliked = (
        PairRenumbering.used(
            take(pairs, pairs["subset"] == subset), user_ids, item_ids
        ).interactions(pairs, subset)
        for subset in (TRAIN, UNLIKED)
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
        _taken(back, user_ids, item_ids),
        log.time_form,
        log.time_order,
    )


def _taken_back(pairs: Pairs) -> Mask:
    return pairs["weight"] <= 0 if "weight" in pairs else np.zeros(len(pairs["user"]), dtype=bool)


def _taken(pairs: Pairs, user_ids: pl.Series, item_ids: pl.Series) -> Interactions | None:
    """Weights are what is taken back of each pair."""
    if not len(pairs["user"]):
        return None
    amounts = np.minimum(-pairs["weight"], np.finfo(np.float32).max)  # of hidden pairs, all
    pairs |= {
        "weight": np.maximum(amounts, LEAST_WEIGHT),
        "subset": np.full_like(pairs["subset"], TRAIN),
    }
    return PairRenumbering.used(pairs, user_ids, item_ids).interactions(pairs, TRAIN)
