"""Leave out of a store of pairs what is too rare, too much, or unknown to train."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ltocf.data.pairs.keys import Rows
from ltocf.data.pairs.store import REST, TRAIN, UNLIKED, Counts, Mask, Pairs, PairStore, take
from ltocf.errors import DataError

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


def cap_users(store: PairStore, most: int, seed: int) -> int:
    """Keep the latest `most` pairs of each user, or some at random where there are no times;
    returns pairs lost."""
    wanted = np.full(store.n_users, most, dtype=np.int64)
    random = np.random.default_rng(seed)

    def keep(pairs: Pairs) -> Pairs:
        liked = np.flatnonzero(pairs["subset"] != UNLIKED)
        users = pairs["user"][liked]
        rank = -pairs["time"][liked] if store.timed else random.random(len(users))
        kept = pairs["subset"] == UNLIKED
        kept[liked] = first_of_each_user(users, np.lexsort((rank, users)), wanted)
        return take(pairs, kept)

    return store.rewrite(keep)


def meet_unknown(store: PairStore, unknown: Unknown) -> int:
    """Leave out test pairs that train does not know, or not; returns how many."""
    lost = 0 if unknown == "keep" else drop_unknown(store)
    if lost and unknown == "error":
        raise DataError(
            f"{lost:,} test interactions have a user or item that is not in train; "
            "drop them with unknown='drop' or keep them with unknown='keep' (--unknown)"
        )
    return lost


def drop_unknown(store: PairStore, *, of_users: bool = True, of_items: bool = True) -> int:
    """Take the pairs of users, and of items, that are not in train out of test; returns how many.
    They are the rest, which is learned when everything is."""
    users, items = (degrees[TRAIN] > 0 for degrees in store.degrees())
    users = users if of_users else np.ones_like(users)
    items = items if of_items else np.ones_like(items)
    before = store.count_liked()

    def set_aside(pairs: Pairs) -> NDArray[np.uint8]:
        known = users[pairs["user"]] & items[pairs["item"]]
        pairs["subset"][~known & (pairs["subset"] != UNLIKED)] = REST
        return pairs["subset"]

    store.relabel(set_aside)
    return before - store.count_liked()


def first_of_each_user(users: Rows, order: NDArray[np.int64], wanted: Counts) -> Mask:
    """The first `wanted` of each user's pairs in an order that keeps users together."""
    starts, counts = runs(users)
    # Position p of `order` belongs to the same user as pair p, as both ascend by user.
    rank = np.arange(len(users)) - np.repeat(starts, counts)
    drawn = np.zeros(len(users), dtype=bool)
    drawn[order] = rank < wanted[users]
    return drawn


def runs(users: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each user's pairs start, and how many there are. `users` ascend."""
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    return starts, np.diff(starts, append=len(users))


def _keep(store: PairStore, users: Mask, items: Mask) -> int:
    """Keep the pairs of these users and items; returns how many are lost."""
    return store.rewrite(
        lambda pairs: take(pairs, users[pairs["user"]] & items[pairs["item"]]),
    )
