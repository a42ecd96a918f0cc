"""A data set that grows by a log: old ids keep their rows, new ones come after them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.display import read_display
from ltocf.data.ingest.log import Reading
from ltocf.data.ingest.memory import LogContents, read_log
from ltocf.data.ingest.readers import LogSource
from ltocf.data.ingest.roles import NAMES
from ltocf.data.interactions import Id, IdMap, Interactions, shorten_id
from ltocf.data.pair_store import Repeats
from ltocf.data.splits import Split, contains, empty_like, placed
from ltocf.errors import DataError

READ = ("threshold", "separator", "header", "encoding", "skip_bad", "repeats")


@dataclass(frozen=True)
class Added:
    """What a log brought: interactions that the data set did not have, and how many it had."""

    interactions: int
    repeated: int
    users: int
    items: int


def read_more(
    dataset: Dataset, source: LogSource, *, every_row_liked: bool = False, **given: Any
) -> LogContents:
    """Read a log as the data set's own was: with its columns, threshold and form unless `given`.

    A column that this log does not have is guessed or left out, but for the rating that a
    threshold needs and for weights. `every_row_liked` forgets the threshold.
    """
    options, columns = dataset.origin.get("options", {}), dataset.origin.get("columns", {})
    given = {name: value for name, value in given.items() if value is not None}
    how = {name: options.get(name) for name in READ} | {"skip_bad": bool(options.get("skip_bad"))}
    if every_row_liked:
        how["threshold"] = None
    usual = {role: name for role in NAMES if (name := columns.get(role)) is not None}
    if how["threshold"] is None and "threshold" not in given:
        usual.pop("rating", None)
    contents = read_log(source, Reading(**(how | given)), usual=usual)
    weighted = dataset.split.train.weights is not None
    if weighted and contents.interactions.weights is None:
        raise DataError(
            f"the interactions so far have weights from column {columns.get('weight')!r}, which "
            "the log does not have; name its column with weight= (--weight)"
        )
    return contents


def enlarge(
    dataset: Dataset,
    log: Interactions,
    unliked: Interactions | None = None,
    *,
    text_ids: bool = False,
) -> tuple[Dataset, Added]:
    """The data set with the log's pairs in train, and new ids after the old ones.

    Where interactions have times and the log has none, it is later than all of them. Where they
    have weights, a repeated pair's are joined. An id that is no whole number where all others are
    is a DataError, unless `text_ids` lets all become text.
    """
    split = dataset.split
    user_ids = _extended(split.train.user_ids, log.user_ids, "user", text_ids)
    item_ids = _extended(split.train.item_ids, log.item_ids, "item", text_ids)
    train, valid, test = (
        replace(part, user_ids=user_ids, item_ids=item_ids)
        for part in (split.train, split.valid, split.test)
    )
    old = None if split.unliked is None else placed(split.unliked, user_ids, item_ids)
    split = replace(split, train=train, valid=valid, test=test, unliked=old)
    news = _timed_like(split.seen, placed(log, user_ids, item_ids))
    known = contains(split.seen, news)
    fresh, again = news.select(~known), news.select(known)
    weighted = split.train.weights is not None
    if not len(fresh) and not weighted:
        raise DataError(
            f"the log adds nothing: the run already has all of its {len(log):,} interactions"
        )
    added = Added(
        interactions=len(fresh),
        repeated=len(again),
        users=len(user_ids) - dataset.split.train.n_users,
        items=len(item_ids) - dataset.split.train.n_items,
    )
    train = split.train.union(fresh)
    if weighted:
        repeats: Repeats = dataset.origin.get("options", {}).get("repeats") or "sum"
        train = _strengthened(train, again, repeats)
    disliked = None if unliked is None else placed(unliked, user_ids, item_ids)
    split = replace(
        split,
        train=train,
        test=split.test.select(~contains(fresh, split.test)),
        unliked=_unliked(split, train, disliked),
    )
    origin = dict(dataset.origin)
    origin["updates"] = [*origin.get("updates", []), asdict(added)]
    names = _padded(dataset.item_names, added.items)
    return replace(dataset, split=split, item_names=names, origin=origin), added


def forget_users(dataset: Dataset, users: Collection[Id]) -> tuple[Dataset, NDArray[np.bool_]]:
    """The data set without any trace of these users, and which of its users are left."""
    user_ids = dataset.split.train.user_ids
    kept = np.ones(len(user_ids), dtype=bool)
    rows = user_ids.find(users)
    kept[rows[rows >= 0]] = False
    if kept.all():
        return dataset, kept
    left, split = user_ids.select(np.flatnonzero(kept)), dataset.split

    def without(part: Interactions) -> Interactions:
        return placed(part, left, part.item_ids)

    train, valid, test = without(split.train), without(split.valid), without(split.test)
    if not len(train):
        raise DataError("without these users there is nothing left to learn from")
    unliked = None if split.unliked is None else without(split.unliked)
    split = replace(split, train=train, valid=valid, test=test, unliked=unliked)
    return replace(dataset, split=split), kept


def rename_items(dataset: Dataset, names: str | Path, log_column: str) -> Dataset:
    """The data set with the display columns of a table of items, and the old where it has none."""
    shown, _ = read_display(names, dataset.split.train.item_ids.ids, log_column)
    old = dataset.item_names
    if old is not None:
        for column in old.get_columns():
            if column.name in shown.columns:
                column = shown[column.name].cast(column.dtype, strict=False).fill_null(column)
            shown = shown.with_columns(column)
    return replace(dataset, item_names=shown)


def _extended(ids: IdMap, more: IdMap, kind: str, text_ids: bool) -> IdMap:
    new: list[Id] = more.ids.to_list()
    extended = ids.extended(new)
    if ids.ids.dtype != extended.ids.dtype and not text_ids:
        odd = next(id_ for id_ in new if not str(id_).lstrip("-").isdigit())
        raise DataError(
            f"{kind} id {shorten_id(odd)} is no whole number, as the {len(ids):,} so far are; "
            "mend it, or pass text_ids=True (--text-ids) to turn all of them into text"
        )
    return extended


def _timed_like(pairs: Interactions, news: Interactions) -> Interactions:
    if pairs.timestamps is None or news.timestamps is not None:
        return news
    later = int(pairs.timestamps.max()) + 1
    return replace(news, timestamps=np.full(len(news), later, dtype=np.int64))


def _strengthened(train: Interactions, again: Interactions, repeats: Repeats) -> Interactions:
    """Train with the weights of pairs that came again joined to theirs."""
    again = again.select(contains(train, again))  # the others are in validation
    assert train.weights is not None and again.weights is not None
    width = np.int64(max(train.n_items, 1))
    places = np.searchsorted(train.users * width + train.items, again.users * width + again.items)
    weights = train.weights.copy()
    join = np.add if repeats == "sum" else np.maximum
    weights[places] = join(weights[places], again.weights)
    return replace(train, weights=weights)


def _unliked(split: Split, train: Interactions, more: Interactions | None) -> Interactions | None:
    """What was or is not liked, and has not been liked either."""
    parts = [part for part in (split.unliked, more) if part is not None]
    if not parts:
        return None
    everything = empty_like(train)
    for part in parts:
        everything = everything.union(part)
    for liked in (train, split.valid, split.test):
        everything = everything.select(~contains(liked, everything))
    return everything if len(everything) else None


def _padded(names: pl.DataFrame | None, rows: int) -> pl.DataFrame | None:
    if names is None or not rows:
        return names
    return pl.concat([names, names.clear(rows)])
