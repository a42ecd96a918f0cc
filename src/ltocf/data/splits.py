"""Cut interactions into train, validation and test, reproducibly and without a loop over users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import IdMap, Interactions, shorten_id
from ltocf.errors import DataError

Mask = NDArray[np.bool_]
Unknown = Literal["error", "drop", "keep"]


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of pairs with the same id maps. `valid` may be empty, the others not."""

    train: Interactions
    valid: Interactions
    test: Interactions
    dropped: int = 0  # test pairs left out because train does not know their user or item

    def __post_init__(self) -> None:
        for name, part in (("train", self.train), ("test", self.test)):
            if not len(part):
                raise DataError(
                    f"the split leaves no interaction for {name}; "
                    "give more data, another ratio or a smaller minimum of interactions"
                )

    @cached_property
    def seen(self) -> Interactions:
        """Train and validation together: what a user has already seen when test is ranked."""
        return self.train.union(self.valid) if len(self.valid) else self.train


def split_ratio(interactions: Interactions, ratio: float = 0.8, *, seed: int) -> Split:
    """Each user's pairs at random, `ratio` of them train, the rest test; items stay known."""
    _check_fraction("ratio", ratio)
    held_out = _draw_per_user(interactions, 1 - ratio, seed)
    return _cut(interactions, held_out)


def split_temporal(interactions: Interactions, ratio: float = 0.8) -> Split:
    """The earliest `ratio` of all pairs train, later ones test; equal times stay together.

    Later pairs of users or items that train does not know are dropped, and so are those ids.
    """
    _check_fraction("ratio", ratio)
    times = _times(interactions)
    last_of_train = np.partition(times, index := max(int(len(times) * ratio) - 1, 0))[index]
    return _drop_unknown(_cut(interactions, times > last_of_train, keep_items=False))


def split_leave_last_out(interactions: Interactions) -> Split:
    """Each user's latest pair test, the rest train; a user with one pair is in train only.

    Test pairs of items that train does not know are dropped, and so are those ids.
    """
    times = _times(interactions)
    order = np.lexsort((times, interactions.users))  # by user, and then by time
    degrees = interactions.user_degrees
    held_out = np.zeros(len(interactions), dtype=bool)
    held_out[order[interactions.indptr[1:][degrees > 1] - 1]] = True
    return _drop_unknown(_cut(interactions, held_out, keep_items=False))


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
    fresh = test.select(~_contains(train, test))
    return Split(train, _empty_like(train), fresh, dropped=len(known) - len(fresh))


def hold_out_validation(split: Split, fraction: float = 0.1, *, seed: int) -> Split:
    """Move `fraction` of each user's train pairs to validation.

    A user's or an item's only pair stays in train; a validation set that is there is refused.
    """
    _check_fraction("fraction", fraction)
    if len(split.valid):
        raise DataError("the split already has a validation set; nothing is held out twice")
    held_out = _stay_known(split.train, _draw_per_user(split.train, fraction, seed))
    return replace(split, train=split.train.select(~held_out), valid=split.train.select(held_out))


def _draw_per_user(interactions: Interactions, fraction: float, seed: int) -> Mask:
    """`fraction` of each user's pairs, rounded, at random, and never all of them."""
    keys = np.random.default_rng(seed).random(len(interactions))
    order = np.lexsort((keys, interactions.users))
    degrees = interactions.user_degrees
    wanted = np.minimum(np.floor(degrees * fraction + 0.5).astype(np.int64), degrees - 1)
    # The pairs are sorted by user, so position p of `order` belongs to the same user as pair p.
    rank = np.arange(len(interactions)) - interactions.indptr[interactions.users]
    drawn = np.zeros(len(interactions), dtype=bool)
    drawn[order] = rank < wanted[interactions.users]
    return drawn


def _stay_known(interactions: Interactions, held_out: Mask) -> Mask:
    """`held_out` without the pairs of items that would otherwise vanish from what is left."""
    left = np.bincount(interactions.items[~held_out], minlength=interactions.n_items)
    return held_out & (left[interactions.items] > 0)


def _cut(interactions: Interactions, held_out: Mask, *, keep_items: bool = True) -> Split:
    if keep_items:
        held_out = _stay_known(interactions, held_out)
    train = interactions.select(~held_out)
    return Split(train, _empty_like(train), interactions.select(held_out))


def _drop_unknown(split: Split) -> Split:
    """Leave out the test pairs of users and items that are not in train, and those ids."""
    users = np.flatnonzero(split.train.user_degrees)
    items = np.flatnonzero(split.train.item_degrees)
    user_ids, item_ids = split.train.user_ids.select(users), split.train.item_ids.select(items)
    train = _renumber(split.train, users, items, user_ids, item_ids)
    test = _renumber(split.test, users, items, user_ids, item_ids)
    return Split(train, _empty_like(train), test, dropped=len(split.test) - len(test))


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


def _contains(train: Interactions, test: Interactions) -> Mask:
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


def _check_fraction(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise DataError(f"{name} must lie between 0 and 1, got {value!r}")
