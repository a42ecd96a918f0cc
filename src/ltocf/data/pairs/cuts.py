"""Cut a store of pairs into train, validation and test, bucket by bucket.

The numbers that are drawn do not depend on the buckets: a log in memory and the same log on disk
are cut alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltocf.data.pairs.store import TEST, TRAIN, VALID, Counts, Mask, Pairs, PairStore, take
from ltocf.data.pairs.thinning import Unknown, drop_unknown, first_of_each_user, meet_unknown, runs
from ltocf.errors import DataError

if TYPE_CHECKING:
    from ltocf.config import ValidationCut

SplitKind = Literal["ratio", "temporal", "leave-last-out", "cold-items", "users", "given", "none"]
SPLIT_KINDS: tuple[SplitKind, ...] = get_args(SplitKind)
COLD_SHARE = 0.1  # of the items: their pairs are held out in a split by cold items
PEOPLE_SHARE, FEWEST = 0.1, 5  # of the users with at least so many pairs, in a split by users


def cut_test(
    store: PairStore, kind: SplitKind, ratio: float, seed: int, unknown: Unknown = "drop"
) -> int:
    """Mark the test pairs. Returns how many were left out because their user or item is not in
    train, unless `unknown` ones are kept."""
    if kind in ("none", "given"):
        return 0
    if kind == "ratio":
        _draw(store, TEST, 1 - ratio, seed)
        left_out = 0
    elif kind == "cold-items":
        _mark_items(store, TEST, seed)
        left_out = drop_unknown(store, of_items=False)
    elif kind == "users":
        _mark_users(store, TEST, seed)
        left_out = drop_unknown(store, of_users=False)
    else:
        _need_times(store, f"the {kind} split")
        _mark(store, TEST, _latest(store, ratio) if kind == "temporal" else _last)
        left_out = meet_unknown(store, unknown)
    refuse_empty(store)
    return left_out


def cut_validation(
    store: PairStore, fraction: float, seed: int, cut: ValidationCut = "random"
) -> None:
    """Mark train pairs as validation: a share of each user's at random, or their latest ones, or
    the last pair of each, or the latest share of all. Train keeps every user and item it has. Or
    all pairs of a tenth of the items, which train then does not know; it keeps every user."""
    if cut == "items":
        _mark_items(store, VALID, seed)
        _give_back(store, VALID, items=False)
        return
    if cut != "random":
        _need_times(store, f"validation by the {cut} pairs")
    if cut in ("random", "latest"):
        _draw(store, VALID, fraction, seed, latest=cut == "latest")
        return
    _mark(store, VALID, _latest(store, 1 - fraction) if cut == "temporal" else _last)
    _give_back(store, VALID)


def refuse_empty(store: PairStore) -> None:
    """A DataError if train or test holds nothing."""
    subsets = store.degrees()[0].sum(axis=1)
    for name, count in (("train", subsets[TRAIN]), ("test", subsets[TEST])):
        if not count:
            raise DataError(
                f"the split leaves no interaction for {name}; "
                "give more data, another ratio or a smaller minimum of interactions"
            )


def check_fraction(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise DataError(f"{name} must lie between 0 and 1, got {value!r}")


def _draw(
    store: PairStore, subset: int, fraction: float, seed: int, *, latest: bool = False
) -> None:
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
        return first_of_each_user(users, order, wanted)

    _mark(store, subset, choose)
    _give_back(store, subset)


def _mark_items(store: PairStore, subset: int, seed: int) -> None:
    """Mark all pairs of some of train's items, drawn at random."""
    items = np.flatnonzero(store.degrees()[1][TRAIN])
    some = max(round(COLD_SHARE * len(items)), 1)
    cold = np.zeros(store.n_items, dtype=bool)
    cold[np.random.default_rng([seed, 2]).choice(items, some, replace=False)] = True
    _mark(store, subset, lambda pairs: cold[pairs["item"]])


def _mark_users(store: PairStore, subset: int, seed: int) -> None:
    """Mark all pairs of some of those with enough of them, drawn at random."""
    users = np.flatnonzero(store.degrees()[0][TRAIN] >= FEWEST)
    if not len(users):
        raise DataError(f"the split by users needs users with {FEWEST} interactions or more")
    some = max(round(PEOPLE_SHARE * len(users)), 1)
    held = np.zeros(store.n_users, dtype=bool)
    held[np.random.default_rng([seed, 3]).choice(users, some, replace=False)] = True
    _mark(store, subset, lambda pairs: held[pairs["user"]])


def _give_back(store: PairStore, subset: int, *, items: bool = True) -> None:
    """Return marked pairs to train if it would otherwise lose all pairs of their user or item."""
    lost_users, lost_items = (
        (degrees[TRAIN] == 0) & (degrees[subset] > 0) for degrees in store.degrees()
    )
    lost_items &= items

    def give_back(pairs: Pairs) -> NDArray[np.uint8]:
        lost = lost_users[pairs["user"]] | lost_items[pairs["item"]]
        pairs["subset"][(pairs["subset"] == subset) & lost] = TRAIN
        return pairs["subset"]

    if lost_users.any() or lost_items.any():
        store.relabel(give_back)


def shares(counts: Counts, fraction: float, seed: int) -> Counts:
    """How many of each user's pairs make up `fraction` of them, never all. (n_users,)

    Rounded, unless that gives less than half of the fraction overall (as when most users have three
    pairs and a tenth is wanted): then rounded up or down at random, so that about the fraction is
    met.
    """
    exact = counts * fraction
    wanted = np.floor(exact + 0.5)
    if wanted.sum() < exact.sum() / 2:
        wanted = np.floor(exact + np.random.default_rng([seed, 1]).random(len(counts)))
    never_all: Counts = np.maximum(counts - 1, 0)
    limited: Counts = np.minimum(wanted.astype(np.int64), never_all)
    return limited


def _mark(store: PairStore, subset: int, choose: Callable[[Pairs], Mask]) -> None:
    def mark(pairs: Pairs) -> NDArray[np.uint8]:
        train = np.flatnonzero(pairs["subset"] == TRAIN)
        pairs["subset"][train[choose(take(pairs, train))]] = subset
        return pairs["subset"]

    store.relabel(mark)


def _latest(store: PairStore, ratio: float) -> Callable[[Pairs], Mask]:
    last_of_train = store.earliest(max(int(store.count_liked() * ratio), 1))
    return lambda pairs: pairs["time"] > last_of_train


def _last(pairs: Pairs) -> Mask:
    """The latest pair of each user who has two or more."""
    users = pairs["user"]
    starts, counts = runs(users)
    order = np.lexsort((pairs["time"], users))
    last = np.zeros(len(users), dtype=bool)
    last[order[(starts + counts - 1)[counts > 1]]] = True
    return last


def _need_times(store: PairStore, what: str) -> None:
    if not store.timed:
        raise DataError(
            f"{what} needs the time of each interaction; name its column with time= (--time)"
        )
