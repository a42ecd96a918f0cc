"""Thin and split a store of pairs: the rules of `splits`, bucket by bucket.

A store that fits one bucket is cut exactly as its interactions in memory would be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltocf.data.ingest.pair_store import TEST, TRAIN, VALID, Mask, Pairs, PairStore, take
from ltocf.data.splits import draw_per_user, last_of_each_user, refuse_empty
from ltocf.errors import DataError

SplitName = Literal["ratio", "temporal", "leave-last-out", "none"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)


def thin(store: PairStore, min_user: int, min_item: int) -> int:
    """Leave out users and items with too few pairs until all have enough; returns pairs lost."""
    lost = 0
    while min_user > 1 or min_item > 1:
        users, items = (degrees.sum(axis=0) for degrees in store.degrees())
        enough_user, enough_item = users >= min_user, items >= min_item
        if np.all(enough_user | (users == 0)) and np.all(enough_item | (items == 0)):
            break
        lost += _keep(store, enough_user, enough_item)
    if not len(store):
        raise DataError(
            f"nothing is left: no users with {min_user} and items with {min_item} interactions "
            "or more among each other; lower --min-user or --min-item"
        )
    return lost


def cut_test(store: PairStore, split: SplitName, ratio: float, seed: int) -> int:
    """Mark the test pairs; returns how many were left out as train does not know them."""
    if split == "none":
        return 0
    if split != "ratio" and not store.timed:
        raise DataError(f"the {split} split needs a time of each interaction; name it with --time")
    if split == "ratio":
        _draw(store, TEST, 1 - ratio, seed)
        unknown = 0
    else:
        _mark(store, TEST, _latest(store, ratio) if split == "temporal" else _last)
        unknown = _drop_unknown(store)
    parts = store.degrees()[0].sum(axis=1)
    refuse_empty(train=parts[TRAIN], test=parts[TEST])
    return unknown


def cut_validation(store: PairStore, fraction: float, seed: int) -> None:
    """Mark a share of each user's train pairs as validation."""
    _draw(store, VALID, fraction, seed)


def _draw(store: PairStore, part: int, fraction: float, seed: int) -> None:
    """Mark a random share of each user's train pairs, but none of an item that train would lose."""
    random = np.random.default_rng(seed)
    _mark(store, part, lambda pairs: draw_per_user(pairs["user"], fraction, random))
    degrees = store.degrees()[1]
    lost = (degrees[TRAIN] == 0) & (degrees[part] > 0)

    def give_back(pairs: Pairs) -> NDArray[np.uint8]:
        pairs["part"][(pairs["part"] == part) & lost[pairs["item"]]] = TRAIN
        return pairs["part"]

    if lost.any():
        store.relabel(give_back)


def _mark(store: PairStore, part: int, choose: Callable[[Pairs], Mask]) -> None:
    def mark(pairs: Pairs) -> NDArray[np.uint8]:
        train = np.flatnonzero(pairs["part"] == TRAIN)
        pairs["part"][train[choose(take(pairs, train))]] = part
        return pairs["part"]

    store.relabel(mark)


def _latest(store: PairStore, ratio: float) -> Callable[[Pairs], Mask]:
    last_of_train = store.earliest(max(int(len(store) * ratio), 1))
    return lambda pairs: pairs["time"] > last_of_train


def _last(pairs: Pairs) -> Mask:
    return last_of_each_user(pairs["user"], pairs["time"])


def _drop_unknown(store: PairStore) -> int:
    users, items = (degrees[TRAIN] > 0 for degrees in store.degrees())
    return _keep(store, users, items)


def _keep(store: PairStore, users: Mask, items: Mask) -> int:
    """Keep the pairs of these users and items; returns how many are lost."""
    return store.rewrite(
        lambda pairs: take(pairs, users[pairs["user"]] & items[pairs["item"]]),
    )
