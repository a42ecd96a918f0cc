"""Leave out of a store of pairs what is too rare, too much, or unknown to train, and renumber the
users and items that are left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.pairs.columns import Rows
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
    """Handle test pairs whose user or item is not in train as `unknown` says. Returns how many were
    left out."""
    lost = 0 if unknown == "keep" else drop_unknown(store)
    if lost and unknown == "error":
        raise DataError(
            f"{lost:,} test interactions have a user or item that is not in train; "
            "drop them with unknown='drop' or keep them with unknown='keep' (--unknown)"
        )
    return lost


def drop_unknown(store: PairStore, *, of_users: bool = True, of_items: bool = True) -> int:
    """Move test pairs whose user or item is not in train to the rest, which a refit on all pairs
    learns too. Returns how many."""
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
    """Keep the pairs of these users and items; returns how many are left out."""
    return store.rewrite(
        lambda pairs: take(pairs, users[pairs["user"]] & items[pairs["item"]]),
    )


@dataclass(frozen=True, eq=False)
class Renumbering:
    """The ids that are left, and for each former row the new one, or -1 if it is gone."""

    ids: pl.Series
    rows: Rows

    @classmethod
    def of(cls, ids: pl.Series, kept: Mask) -> Renumbering:
        rows = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        return cls(ids.filter(pl.Series(kept)), rows)


@dataclass(frozen=True, eq=False)
class PairRenumbering:
    """Users and items renumbered together."""

    users: Renumbering
    items: Renumbering

    @classmethod
    def of(
        cls, user_ids: pl.Series, item_ids: pl.Series, users: Mask, items: Mask
    ) -> PairRenumbering:
        """The users and items where the masks hold."""
        return cls(Renumbering.of(user_ids, users), Renumbering.of(item_ids, items))

    @classmethod
    def none(cls, user_ids: pl.Series, item_ids: pl.Series) -> PairRenumbering:
        """All of them, in their rows."""
        everybody = np.ones(len(user_ids), dtype=bool), np.ones(len(item_ids), dtype=bool)
        return cls.of(user_ids, item_ids, *everybody)

    @classmethod
    def used(cls, pairs: Pairs, user_ids: pl.Series, item_ids: pl.Series) -> PairRenumbering:
        """The users and items that have a pair."""
        users = np.bincount(pairs["user"], minlength=len(user_ids)) > 0
        items = np.bincount(pairs["item"], minlength=len(item_ids)) > 0
        return cls.of(user_ids, item_ids, users, items)

    def pairs(self, pairs: Pairs, subset: int) -> Pairs:
        """The pairs of one subset in new rows, without those whose user or item is gone."""
        chosen = take(pairs, np.flatnonzero(pairs["subset"] == subset))
        del chosen["subset"]
        chosen["user"] = self.users.rows[chosen["user"]]
        chosen["item"] = self.items.rows[chosen["item"]]
        return take(chosen, (chosen["user"] >= 0) & (chosen["item"] >= 0))

    def interactions(self, pairs: Pairs, subset: int) -> Interactions:
        """The same as interactions. The pairs must be distinct and ascend by user and item."""
        kept = self.pairs(pairs, subset)
        return Interactions(
            kept["user"],
            kept["item"],
            IdMap(self.users.ids),
            IdMap(self.items.ids),
            kept.get("time"),
            kept.get("weight"),
        )
