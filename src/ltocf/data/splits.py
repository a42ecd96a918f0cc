"""Train, validation and test: as `pair_cuts` cuts them, or as others did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import IdMap, Interactions, shorten_id
from ltocf.data.pair_cuts import SplitKind, Unknown, check_fraction, cut_test, cut_validation
from ltocf.data.pair_store import PARTS, TRAIN, VALID, Counts, Mask, Pairs, PairStore, take
from ltocf.errors import DataError


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of pairs with the same id maps. Only train is never empty.

    `kind` tells how test was chosen: at random, as the latest, by others, or not at all.
    """

    train: Interactions
    valid: Interactions
    test: Interactions
    dropped: int = 0  # test pairs left out: train does not know their user or item, or has them
    kind: SplitKind = "given"
    # What users met and did not like, such as low ratings: never trained on, never recommended.
    unliked: Interactions | None = None

    @cached_property
    def seen(self) -> Interactions:
        """Train and validation together: what a user has liked when test is ranked."""
        return self.train.union(self.valid) if len(self.valid) else self.train

    @cached_property
    def known(self) -> Interactions:
        """All that a user has met but for test, liked or not: what is not recommended again."""
        return self.seen if self.unliked is None else self.seen.union(self.unliked)

    def parts(self) -> dict[str, Interactions]:
        """Every part by its name, the empty ones too."""
        unliked = empty_like(self.train) if self.unliked is None else self.unliked
        return dict(zip(PARTS, (self.train, self.valid, self.test, unliked), strict=True))


def no_split(interactions: Interactions, unliked: Interactions | None = None) -> Split:
    """Everything trains: for a model that is to be used, not measured."""
    nothing = empty_like(interactions)
    return Split(interactions, nothing, nothing, kind="none", unliked=unliked)


def all_in_train(split: Split) -> Split:
    """The same pairs, test and validation among them, all in train: for a model to deploy."""
    whole = split.seen.union(split.test) if len(split.test) else split.seen
    return no_split(whole, split.unliked)


def split_ratio(interactions: Interactions, ratio: float = 0.8, *, seed: int) -> Split:
    """Each user's pairs at random, `ratio` of them train, the rest test; items stay known."""
    return _split(interactions, "ratio", ratio, seed)


def split_temporal(interactions: Interactions, ratio: float = 0.8) -> Split:
    """The earliest `ratio` of all pairs train, later ones test; equal times stay together.

    Later pairs of users or items that train does not know are dropped, and so are those ids.
    """
    return _split(interactions, "temporal", ratio)


def split_leave_last_out(interactions: Interactions) -> Split:
    """Each user's latest pair test, the rest train; a user with one pair is in train only.

    Test pairs of items that train does not know are dropped, and so are those ids.
    """
    return _split(interactions, "leave-last-out")


def split_given(train: Interactions, test: Interactions, *, unknown: Unknown = "error") -> Split:
    """Two sets as their makers cut them, on train's id maps; test pairs that train has are dropped.

    A test user or item that train does not know is an error, or is dropped, or (for published sets)
    kept: it enlarges the id maps.
    """
    user_ids, item_ids = train.user_ids, train.item_ids
    if unknown == "keep":
        user_ids = user_ids.extended(test.user_ids.ids.to_list())
        item_ids = item_ids.extended(test.item_ids.ids.to_list())
    if unknown == "error":
        _refuse_unknown(test, user_ids, item_ids)
    train = replace(train, user_ids=user_ids, item_ids=item_ids)
    known = placed(test, user_ids, item_ids)
    fresh = known.select(~contains(train, known))
    for name, part in (("train", train), ("test", fresh)):
        if not len(part):
            raise DataError(f"the {name} set holds no interaction that the other one leaves to it")
    return Split(train, empty_like(train), fresh, dropped=len(test) - len(fresh))


def hold_out_validation(
    split: Split, fraction: float = 0.1, *, seed: int, latest: bool = False
) -> Split:
    """Move `fraction` of each user's train pairs to validation, at random or the latest ones.

    Where users have too few pairs for that, some users give one. A user's or an item's only pair
    stays in train, so that validation may stay empty; one that is there is refused.
    """
    check_fraction("fraction", fraction)
    if len(split.valid):
        raise DataError("the split already has a validation set; nothing is held out twice")
    store = PairStore.in_memory(split.train)
    cut_validation(store, fraction, seed, latest=latest)
    (labels,) = store.read("part")
    held_out: Mask = labels["part"] == VALID
    return replace(split, train=split.train.select(~held_out), valid=split.train.select(held_out))


def _split(interactions: Interactions, kind: SplitKind, ratio: float = 0.8, seed: int = 0) -> Split:
    check_fraction("ratio", ratio)
    store = PairStore.in_memory(interactions)
    dropped = cut_test(store, kind, ratio, seed)
    if kind == "ratio":
        renumber = _Renumbering.none(interactions)
    else:
        renumber = _Renumbering.of(interactions, *(degrees[TRAIN] for degrees in store.degrees()))
    (pairs,) = store.read()
    train, valid, test, _ = (
        renumber.part(take(pairs, pairs["part"] == part)) for part in range(len(PARTS))
    )
    return Split(train, valid, test, dropped, kind)


@dataclass(frozen=True)
class _Renumbering:
    """The users and items that are left, and the new row of each old one."""

    user_ids: IdMap
    item_ids: IdMap
    user_rows: NDArray[np.int64]
    item_rows: NDArray[np.int64]

    @classmethod
    def none(cls, pairs: Interactions) -> _Renumbering:
        rows = np.arange(pairs.n_users), np.arange(pairs.n_items)
        return cls(pairs.user_ids, pairs.item_ids, *rows)

    @classmethod
    def of(cls, pairs: Interactions, users: Counts, items: Counts) -> _Renumbering:
        user_ids = pairs.user_ids.select(np.flatnonzero(users))
        item_ids = pairs.item_ids.select(np.flatnonzero(items))
        return cls(user_ids, item_ids, np.cumsum(users > 0) - 1, np.cumsum(items > 0) - 1)

    def part(self, pairs: Pairs) -> Interactions:
        users, items = self.user_rows[pairs["user"]], self.item_rows[pairs["item"]]
        optional = pairs.get("time"), pairs.get("weight")
        return Interactions.build(users, items, self.user_ids, self.item_ids, *optional)


def placed(pairs: Interactions, user_ids: IdMap, item_ids: IdMap) -> Interactions:
    """The pairs whose users and items are among these ids, on these ids."""
    users = _find(pairs.user_ids, user_ids)[pairs.users]
    items = _find(pairs.item_ids, item_ids)[pairs.items]
    known = (users >= 0) & (items >= 0)
    kept = pairs.select(known)
    optional = kept.timestamps, kept.weights
    return Interactions.build(users[known], items[known], user_ids, item_ids, *optional)


def contains(train: Interactions, test: Interactions) -> Mask:
    """Whether train has each pair of test; they share their ids."""
    width = max(train.n_items, 1)
    ours = train.users.astype(np.int64) * width + train.items
    theirs = test.users.astype(np.int64) * width + test.items
    return np.isin(theirs, ours, assume_unique=True)


def empty_like(part: Interactions) -> Interactions:
    return part.select(np.zeros(len(part), dtype=bool))


def _find(ids: IdMap, among: IdMap) -> NDArray[np.int32]:
    if ids == among:
        return np.arange(len(ids), dtype=np.int32)
    return among.find(ids.ids.to_list())


def _refuse_unknown(test: Interactions, user_ids: IdMap, item_ids: IdMap) -> None:
    users = _find(test.user_ids, user_ids)[test.users]
    items = _find(test.item_ids, item_ids)[test.items]
    if not (pairs := int(np.count_nonzero((users < 0) | (items < 0)))):
        return
    kind, row, ids = (
        ("user", test.users[users < 0][0], test.user_ids)
        if (users < 0).any()
        else ("item", test.items[items < 0][0], test.item_ids)
    )
    name = shorten_id(ids[np.array([row])][0])
    raise DataError(
        f"test {kind} {name} is not in train ({pairs:,} test interactions are unknown to it); "
        "drop them with unknown='drop' (--unknown drop) or keep them with 'keep'"
    )
