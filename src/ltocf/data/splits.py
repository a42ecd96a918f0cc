"""Cut interactions into train, validation and test, reproducibly and without a loop over users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import IdMap, Interactions, Rows, shorten_id
from ltocf.errors import DataError

Mask = NDArray[np.bool_]
Unknown = Literal["error", "drop", "keep"]
SplitKind = Literal["ratio", "temporal", "leave-last-out", "given", "none"]
SPLIT_KINDS: tuple[SplitKind, ...] = get_args(SplitKind)


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of pairs with the same id maps. Only train is never empty.

    `kind` tells how test was chosen: at random, as the latest, by others, or not at all.
    """

    train: Interactions
    valid: Interactions
    test: Interactions
    dropped: int = 0  # test pairs left out because train does not know their user or item
    kind: SplitKind = "given"

    @cached_property
    def seen(self) -> Interactions:
        """Train and validation together: what a user has already seen when test is ranked."""
        return self.train.union(self.valid) if len(self.valid) else self.train


def no_split(interactions: Interactions) -> Split:
    """Everything trains: for a model that is to be used, not measured."""
    nothing = _empty_like(interactions)
    return Split(interactions, nothing, nothing, kind="none")


def split_ratio(interactions: Interactions, ratio: float = 0.8, *, seed: int) -> Split:
    """Each user's pairs at random, `ratio` of them train, the rest test; items stay known."""
    check_fraction("ratio", ratio)
    held_out = draw_per_user(interactions.users, 1 - ratio, np.random.default_rng(seed))
    return _cut(interactions, held_out, "ratio")


def split_temporal(interactions: Interactions, ratio: float = 0.8) -> Split:
    """The earliest `ratio` of all pairs train, later ones test; equal times stay together.

    Later pairs of users or items that train does not know are dropped, and so are those ids.
    """
    check_fraction("ratio", ratio)
    times = _times(interactions)
    last_of_train = np.partition(times, index := max(int(len(times) * ratio) - 1, 0))[index]
    return _drop_unknown(_cut(interactions, times > last_of_train, "temporal"))


def split_leave_last_out(interactions: Interactions) -> Split:
    """Each user's latest pair test, the rest train; a user with one pair is in train only.

    Test pairs of items that train does not know are dropped, and so are those ids.
    """
    held_out = last_of_each_user(interactions.users, _times(interactions))
    return _drop_unknown(_cut(interactions, held_out, "leave-last-out"))


def split_given(train: Interactions, test: Interactions, *, unknown: Unknown = "error") -> Split:
    """Two sets as their makers cut them, on train's id maps; test pairs that train has are dropped.

    A test user or item that train does not know is an error, or is dropped, or (for published sets)
    kept: it enlarges the id maps.
    """
    user_ids, item_ids = train.user_ids, train.item_ids
    if unknown == "keep":
        user_ids = user_ids.extended(test.user_ids.ids.to_list())
        item_ids = item_ids.extended(test.item_ids.ids.to_list())
    users = _find(test.user_ids, user_ids)[test.users]
    items = _find(test.item_ids, item_ids)[test.items]
    known = (users >= 0) & (items >= 0)
    if unknown == "error" and not known.all():
        _refuse_unknown(test, users, items)
    train = Interactions(train.users, train.items, user_ids, item_ids, train.timestamps)
    times = None if test.timestamps is None else test.timestamps[known]
    test = Interactions.build(users[known], items[known], user_ids, item_ids, times)
    fresh = test.select(~contains(train, test))
    return _checked(Split(train, _empty_like(train), fresh, dropped=len(known) - len(fresh)))


def hold_out_validation(
    split: Split, fraction: float = 0.1, *, seed: int, latest: bool = False
) -> Split:
    """Move `fraction` of each user's train pairs to validation, at random or the latest ones.

    A user's or an item's only pair stays in train; a validation set that is there is refused.
    """
    check_fraction("fraction", fraction)
    if len(split.valid):
        raise DataError("the split already has a validation set; nothing is held out twice")
    users = split.train.users
    if latest:
        drawn = latest_per_user(users, fraction, _times(split.train))
    else:
        drawn = draw_per_user(users, fraction, np.random.default_rng(seed))
    held_out = _stay_known(split.train, drawn)
    return replace(split, train=split.train.select(~held_out), valid=split.train.select(held_out))


def draw_per_user(users: Rows, fraction: float, random: np.random.Generator) -> Mask:
    """`fraction` of each user's pairs, rounded, at random, and never all. `users` ascend."""
    # One sort of one number is ten times faster than lexsort.
    draw = (random.random(len(users)) * 2**32).astype(np.int64)
    return _first_per_user(users, np.argsort(users.astype(np.int64) << 32 | draw), fraction)


def latest_per_user(users: Rows, fraction: float, times: NDArray[np.int64]) -> Mask:
    """The latest `fraction` of each user's pairs, rounded, and never all. `users` ascend."""
    return _first_per_user(users, np.lexsort((-times, users)), fraction)


def _first_per_user(users: Rows, order: NDArray[np.int64], fraction: float) -> Mask:
    """The first `fraction` of each user's pairs in an order that keeps users together."""
    starts, counts = _runs(users)
    wanted = np.minimum(np.floor(counts * fraction + 0.5).astype(np.int64), counts - 1)
    # Position p of `order` belongs to the same user as pair p, as both ascend by user.
    rank = np.arange(len(users)) - np.repeat(starts, counts)
    drawn = np.zeros(len(users), dtype=bool)
    drawn[order] = rank < np.repeat(wanted, counts)
    return drawn


def last_of_each_user(users: Rows, times: NDArray[np.int64]) -> Mask:
    """The latest pair of each user who has two or more. `users` ascend."""
    starts, counts = _runs(users)
    order = np.lexsort((times, users))
    last = np.zeros(len(users), dtype=bool)
    last[order[(starts + counts - 1)[counts > 1]]] = True
    return last


def _runs(users: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each user's pairs start, and how many there are."""
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    return starts, np.diff(starts, append=len(users))


def _stay_known(interactions: Interactions, held_out: Mask) -> Mask:
    """`held_out` without the pairs of items that would otherwise vanish from what is left."""
    left = np.bincount(interactions.items[~held_out], minlength=interactions.n_items)
    return held_out & (left[interactions.items] > 0)


def _cut(interactions: Interactions, held_out: Mask, kind: SplitKind) -> Split:
    if kind == "ratio":
        held_out = _stay_known(interactions, held_out)
    train = interactions.select(~held_out)
    return _checked(Split(train, _empty_like(train), interactions.select(held_out), kind=kind))


def _drop_unknown(split: Split) -> Split:
    """Leave out the test pairs of users and items that are not in train, and those ids."""
    users = np.flatnonzero(split.train.user_degrees)
    items = np.flatnonzero(split.train.item_degrees)
    user_ids, item_ids = split.train.user_ids.select(users), split.train.item_ids.select(items)
    train = _renumber(split.train, users, items, user_ids, item_ids)
    test = _renumber(split.test, users, items, user_ids, item_ids)
    dropped = len(split.test) - len(test)
    return _checked(Split(train, _empty_like(train), test, dropped, split.kind))


def _checked(split: Split) -> Split:
    refuse_empty(train=len(split.train), test=len(split.test))
    return split


def refuse_empty(**counts: int) -> None:
    """A DataError if a part of a split that must hold something holds nothing."""
    for part, count in counts.items():
        if not count:
            raise DataError(
                f"the split leaves no interaction for {part}; "
                "give more data, another ratio or a smaller minimum of interactions"
            )


def _renumber(
    part: Interactions,
    users: NDArray[np.int64],
    items: NDArray[np.int64],
    user_ids: IdMap,
    item_ids: IdMap,
) -> Interactions:
    """`part` with only the given users' and items' rows, which become 0, 1, ... in their order."""
    new_user = np.full(part.n_users, -1, dtype=np.int32)
    new_item = np.full(part.n_items, -1, dtype=np.int32)
    new_user[users], new_item[items] = np.arange(len(users)), np.arange(len(items))
    kept = part.select((new_user[part.users] >= 0) & (new_item[part.items] >= 0))
    return Interactions(
        new_user[kept.users], new_item[kept.items], user_ids, item_ids, kept.timestamps
    )


def contains(train: Interactions, test: Interactions) -> Mask:
    """Whether train has each pair of test; they share their ids."""
    width = max(train.n_items, 1)
    ours = train.users.astype(np.int64) * width + train.items
    theirs = test.users.astype(np.int64) * width + test.items
    return np.isin(theirs, ours, assume_unique=True)


def _find(ids: IdMap, among: IdMap) -> NDArray[np.int32]:
    if ids == among:
        return np.arange(len(ids), dtype=np.int32)
    return among.find(ids.ids.to_list())


def _refuse_unknown(test: Interactions, users: NDArray[np.int32], items: NDArray[np.int32]) -> None:
    pairs = int(np.count_nonzero((users < 0) | (items < 0)))
    kind, row, ids = (
        ("user", test.users[users < 0][0], test.user_ids)
        if (users < 0).any()
        else ("item", test.items[items < 0][0], test.item_ids)
    )
    name = shorten_id(ids[np.array([row])][0])
    raise DataError(
        f"test {kind} {name} is not in train ({pairs:,} test interactions are unknown to it); "
        "drop them with unknown='drop'"
    )


def _empty_like(part: Interactions) -> Interactions:
    return part.select(np.zeros(len(part), dtype=bool))


def _times(interactions: Interactions) -> NDArray[np.int64]:
    if interactions.timestamps is None:
        raise DataError("this split needs a time of each interaction; name the time column")
    return interactions.timestamps


def check_fraction(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise DataError(f"{name} must lie between 0 and 1, got {value!r}")
