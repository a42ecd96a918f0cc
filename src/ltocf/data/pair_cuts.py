"""Cut a store of pairs into train, validation and test, bucket by bucket.

The numbers that are drawn do not depend on the buckets: a log in memory and the same log on disk
are cut alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltocf.data.pair_store import TEST, TRAIN, VALID, Counts, Mask, Pairs, PairStore, take
from ltocf.data.row_arrays import Rows
from ltocf.errors import DataError

SplitKind = Literal["ratio", "temporal", "leave-last-out", "given", "none"]
SPLIT_KINDS: tuple[SplitKind, ...] = get_args(SplitKind)
Unknown = Literal["error", "drop", "keep"]


def drop_rare(store: PairStore, min_user: int, min_item: int) -> int:
    """Leave out users and items with too few pairs until all have enough; returns pairs lost."""
    lost = 0
    while min_user > 1 or min_item > 1:
        users, items = store.liked_degrees()
        enough_user, enough_item = users >= min_user, items >= min_item
        if np.all(enough_user | (users == 0)) and np.all(enough_item | (items == 0)):
            break
        lost += _keep(store, enough_user, enough_item)
    if not store.count_liked():
        raise DataError(
            f"nothing is left: no users with {min_user} and items with {min_item} interactions "
            "or more among each other; lower min_user or min_item (--min-user, --min-item)"
        )
    return lost


def cut_test(store: PairStore, kind: SplitKind, ratio: float, seed: int) -> int:
    """Mark the test pairs; returns how many were left out as train does not know them."""
    if kind in ("none", "given"):
        return 0
    if kind == "ratio":
        _draw(store, TEST, 1 - ratio, seed)
        unknown = 0
    else:
        _need_times(store, f"the {kind} split")
        _mark(store, TEST, _latest(store, ratio) if kind == "temporal" else _last)
        unknown = drop_unknown(store)
    refuse_empty(store)
    return unknown


def cut_validation(store: PairStore, fraction: float, seed: int, *, latest: bool = False) -> None:
    """Mark a share of each user's train pairs as validation, at random or the latest ones."""
    if latest:
        _need_times(store, "validation by the latest pairs")
    _draw(store, VALID, fraction, seed, latest=latest)


def drop_unknown(store: PairStore) -> int:
    """Leave out the pairs of users and items that are not in train; returns how many."""
    users, items = (degrees[TRAIN] > 0 for degrees in store.degrees())
    return _keep(store, users, items)


def refuse_empty(store: PairStore) -> None:
    """A DataError if train or test holds nothing."""
    parts = store.degrees()[0].sum(axis=1)
    for name, count in (("train", parts[TRAIN]), ("test", parts[TEST])):
        if not count:
            raise DataError(
                f"the split leaves no interaction for {name}; "
                "give more data, another ratio or a smaller minimum of interactions"
            )


def check_fraction(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise DataError(f"{name} must lie between 0 and 1, got {value!r}")


def _draw(store: PairStore, part: int, fraction: float, seed: int, *, latest: bool = False) -> None:
    """Mark a share of each user's train pairs, but none of an item that train would lose."""
    wanted = shares(store.degrees()[0][TRAIN], fraction, seed)
    random = np.random.default_rng(seed)

    def choose(pairs: Pairs) -> Mask:
        users = pairs["user"]
        if latest:
            order = np.lexsort((-pairs["time"], users))
        else:
            # One sort of one number is ten times faster than lexsort.
            drawn = (random.random(len(users)) * 2**32).astype(np.int64)
            order = np.argsort(users.astype(np.int64) << 32 | drawn)
        return _first_of_each_user(users, order, wanted)

    _mark(store, part, choose)
    degrees = store.degrees()[1]
    lost = (degrees[TRAIN] == 0) & (degrees[part] > 0)

    def give_back(pairs: Pairs) -> NDArray[np.uint8]:
        pairs["part"][(pairs["part"] == part) & lost[pairs["item"]]] = TRAIN
        return pairs["part"]

    if lost.any():
        store.relabel(give_back)


def shares(counts: Counts, fraction: float, seed: int) -> Counts:
    """How many of each user's pairs make up `fraction` of them, never all. (n_users,)

    Rounded, unless that gives less than half of the fraction, as where most users have three pairs
    and a tenth is wanted: then up or down by a draw, so that about the fraction is met.
    """
    exact = counts * fraction
    wanted = np.floor(exact + 0.5)
    if wanted.sum() < exact.sum() / 2:
        wanted = np.floor(exact + np.random.default_rng([seed, 1]).random(len(counts)))
    never_all: Counts = np.maximum(counts - 1, 0)
    limited: Counts = np.minimum(wanted.astype(np.int64), never_all)
    return limited


def _first_of_each_user(users: Rows, order: NDArray[np.int64], wanted: Counts) -> Mask:
    """The first `wanted` of each user's pairs in an order that keeps users together."""
    starts, counts = _runs(users)
    # Position p of `order` belongs to the same user as pair p, as both ascend by user.
    rank = np.arange(len(users)) - np.repeat(starts, counts)
    drawn = np.zeros(len(users), dtype=bool)
    drawn[order] = rank < wanted[users]
    return drawn


def _mark(store: PairStore, part: int, choose: Callable[[Pairs], Mask]) -> None:
    def mark(pairs: Pairs) -> NDArray[np.uint8]:
        train = np.flatnonzero(pairs["part"] == TRAIN)
        pairs["part"][train[choose(take(pairs, train))]] = part
        return pairs["part"]

    store.relabel(mark)


def _latest(store: PairStore, ratio: float) -> Callable[[Pairs], Mask]:
    last_of_train = store.earliest(max(int(store.count_liked() * ratio), 1))
    return lambda pairs: pairs["time"] > last_of_train


def _last(pairs: Pairs) -> Mask:
    """The latest pair of each user who has two or more."""
    users = pairs["user"]
    starts, counts = _runs(users)
    order = np.lexsort((pairs["time"], users))
    last = np.zeros(len(users), dtype=bool)
    last[order[(starts + counts - 1)[counts > 1]]] = True
    return last


def _runs(users: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each user's pairs start, and how many there are. `users` ascend."""
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    return starts, np.diff(starts, append=len(users))


def _keep(store: PairStore, users: Mask, items: Mask) -> int:
    """Keep the pairs of these users and items; returns how many are lost."""
    return store.rewrite(
        lambda pairs: take(pairs, users[pairs["user"]] & items[pairs["item"]]),
    )


def _need_times(store: PairStore, what: str) -> None:
    if not store.timed:
        raise DataError(
            f"{what} needs a time of each interaction; name its column with time= (--time)"
        )
