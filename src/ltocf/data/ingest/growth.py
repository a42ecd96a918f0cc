"""A data set that grows by a log: old ids keep their rows, new ones come after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ltocf.data.dataset import Dataset
from ltocf.data.ids import is_integer_id
from ltocf.data.ingest.item_table import add_items, read_items
from ltocf.data.ingest.read_log import LogContents, read_log
from ltocf.data.ingest.readers import LogSource
from ltocf.data.ingest.recipe import Reading
from ltocf.data.ingest.roles import NAMES
from ltocf.data.interactions import Id, IdMap, Interactions, shorten_id
from ltocf.data.pairs.store import Repeats
from ltocf.data.splits import Split, all_in_train, contains, placed, take_back
from ltocf.data.times import MILLION, converted
from ltocf.errors import DataError

READ = ("threshold", "separator", "header", "encoding", "skip_bad", "repeats", "weigh")


@dataclass(frozen=True)
class Growth:
    """What a log brought: interactions that the data set did not have, and how many it had."""

    interactions: int
    repeated: int
    users: int
    items: int
    taken_back: int = 0  # pairs that the log returns or hides

    @property
    def nothing(self) -> bool:
        """Whether the log adds nothing to the data set."""
        return not (self.interactions or self.users or self.items or self.taken_back)


def read_more(
    dataset: Dataset,
    source: LogSource,
    *,
    every_row_liked: bool = False,
    now: bool = False,
    **given: Any,
) -> LogContents:
    """Read a log in the way the data set's own log was read: with its columns, threshold and form,
    unless `given`.

    A column that this log does not have is guessed or left out, but for the rating that a threshold
    needs and for weights. `every_row_liked` forgets the threshold. Times become what those of the
    data set are, or are refused if they cannot be compared; those of what happens `now` come after
    plain numbers.
    """
    options, columns = dataset.origin.get("options", {}), dataset.origin.get("columns", {})
    given = {name: value for name, value in given.items() if value is not None}
    how = {name: options.get(name) for name in READ} | {"skip_bad": bool(options.get("skip_bad"))}
    if every_row_liked:
        how["threshold"] = None
    if now:  # these are events of a service, without a column of kinds
        how["weigh"] = None
    # The first log showed whether the day comes first; a later one may be too short for that.
    how["time_format"] = options.get("time_format") or dataset.time_order
    usual = {role: name for role in NAMES if (name := columns.get(role)) is not None}
    if how["threshold"] is None and "threshold" not in given:
        usual.pop("rating", None)
    contents = read_log(source, Reading(**(how | given)), usual=usual)
    contents = _timed_alike(dataset, contents, now)
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
    taken: Interactions | None = None,
    *,
    text_ids: bool = False,
) -> tuple[Dataset, Growth]:
    """The data set with the log's pairs in train, and new ids after the old ones.

    Where interactions have times and the log has none, it is later than all of them. Where they
    have weights, a repeated pair's are joined. What is `taken` back leaves every subset, or so much
    of its weight. An id that is no whole number where all others are is a DataError, unless
    `text_ids` lets all become text.
    """
    split = dataset.split
    user_ids = _extended(split.train.user_ids, log.user_ids, "user", text_ids)
    item_ids = _extended(split.train.item_ids, log.item_ids, "item", text_ids)
    train, valid, test = (
        replace(subset, user_ids=user_ids, item_ids=item_ids)
        for subset in (split.train, split.valid, split.test)
    )
    old = None if split.unliked is None else placed(split.unliked, user_ids, item_ids)
    split = replace(split, train=train, valid=valid, test=test, unliked=old)
    news = _timed_like(split.seen, placed(log, user_ids, item_ids))
    known = contains(split.seen, news)
    fresh, again = news.select(~known), news.select(known)
    weighted = split.train.weights is not None
    added = Growth(
        interactions=len(fresh),
        repeated=len(again),
        users=len(user_ids) - dataset.split.train.n_users,
        items=len(item_ids) - dataset.split.train.n_items,
    )
    train = split.train.union(fresh)
    if weighted:
        repeats: Repeats = dataset.origin.get("options", {}).get("repeats") or "sum"
        train = _strengthened(train, again, repeats)
    older = split.unliked
    test = split.test.select(~contains(fresh, split.test))
    split = replace(split, train=train, test=test)
    if taken is not None:
        split, gone = take_back(split, placed(taken, user_ids, item_ids))
        added = replace(added, taken_back=gone)
    disliked = None if unliked is None else placed(unliked, user_ids, item_ids)
    split = replace(split, unliked=_unliked(split, [older, disliked]))
    origin = dict(dataset.origin)
    origin["updates"] = [*origin.get("updates", []), asdict(added)]
    names = _padded(dataset.item_names, added.items)
    return replace(dataset, split=split, item_names=names, origin=origin), added


def extend_catalogue(
    dataset: Dataset, items: LogSource, log_column: str, *, text_ids: bool = False
) -> Dataset:
    """The data set with all items of a table and their attributes; others keep what they had."""
    ids = IdMap(read_items(items, log_column).ids)
    known = dataset.split.train.item_ids
    return add_items(dataset, items, log_column, ids=_extended(known, ids, "item", text_ids))


def _extended(ids: IdMap, more: IdMap, kind: str, text_ids: bool) -> IdMap:
    new: list[Id] = more.ids.to_list()
    extended = ids.extended(new)
    if ids.ids.dtype != extended.ids.dtype and not text_ids:
        # '007' and 2^63 are digits, but no integer of ours is written so.
        odd = next(id_ for id_ in new if not is_integer_id(id_))
        raise DataError(
            f"{kind} id {shorten_id(odd)} is not a whole number of 64 bits, as the {len(ids):,} so "
            "far are; correct it, or pass text_ids=True (--text-ids) to turn all of them into text"
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
    places = np.searchsorted(train.keys, again.keys)
    weights = train.weights.copy()
    join = np.add if repeats == "sum" else np.maximum
    weights[places] = join(weights[places], again.weights)
    return replace(train, weights=weights)


def _unliked(split: Split, subsets: Sequence[Interactions | None]) -> Interactions | None:
    """Pairs that were rated below the threshold, before or now, and never liked."""
    everything = split.train.empty()
    for subset in subsets:
        everything = everything if subset is None else everything.union(subset)
    for liked in (split.train, split.valid, split.test):
        everything = everything.select(~contains(liked, everything))
    return everything if len(everything) else None


def _padded(names: pl.DataFrame | None, rows: int) -> pl.DataFrame | None:
    if names is None or not rows:
        return names
    return pl.concat([names, names.clear(rows)])


def _timed_alike(dataset: Dataset, contents: LogContents, now: bool) -> LogContents:
    """The log with times as those of the data set are."""
    ours, form, wanted = dataset.split.seen.timestamps, contents.time_form, dataset.time_form
    if ours is None or form is None:
        return contents

    def alike(pairs: Interactions) -> Interactions:
        if pairs.timestamps is None:
            return pairs
        if now and form == "moments" and wanted != "moments":
            # Seconds, as `clock` has it, are later than any plain number.
            return replace(
                pairs, timestamps=pairs.timestamps // (1 if wanted == "fractions" else MILLION)
            )
        return replace(pairs, timestamps=converted(pairs.timestamps, form, ours, wanted))

    unliked = None if contents.unliked is None else alike(contents.unliked)
    return replace(contents, interactions=alike(contents.interactions), unliked=unliked)


def with_every_pair(dataset: Dataset) -> Dataset:
    """Every pair of the log in train, for a model to deploy: validation, test, and those that no
    test could use as they were of users or items too new for train."""
    whole = replace(dataset, split=all_in_train(dataset.split), rest=None)
    if dataset.rest is None:
        return whole
    columns = {name: dataset.rest[name] for name in dataset.rest.columns}
    ids = {name: columns.pop(name).rename("id") for name in ("user", "item")}
    maps = {name: IdMap(series.unique(maintain_order=True)) for name, series in ids.items()}
    rest = Interactions.build(
        maps["user"].find(ids["user"].to_list()),
        maps["item"].find(ids["item"].to_list()),
        maps["user"],
        maps["item"],
        columns["time"].to_numpy() if "time" in columns else None,
        columns["weight"].to_numpy() if "weight" in columns else None,
    )
    grown, _ = enlarge(whole, rest, text_ids=True)
    return replace(grown, origin=dataset.origin)
