"""Train, validation and test pairs: as `pairs.cuts` splits them, or as they were published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import IdMap, Interactions, Tags, shorten_id
from ltocf.data.pairs.cuts import SplitKind, check_fraction, cut_test, cut_validation
from ltocf.data.pairs.store import SUBSETS, TRAIN, VALID, Mask, PairStore
from ltocf.data.pairs.thinning import PairRenumbering, Unknown
from ltocf.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ltocf.config import ValidationCut


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint sets of pairs with the same id maps. Only train is never empty.

    `kind` tells how test was chosen: at random, as the latest, by others, or not at all.
    """

    train: Interactions
    valid: Interactions
    test: Interactions
    # Test pairs left out: their user or item is not in train, or the pair is in train.
    dropped: int = 0
    kind: SplitKind = "given"
    # Pairs that users did not like, such as low ratings: never trained on, never recommended.
    unliked: Interactions | None = None

    @cached_property
    def seen(self) -> Interactions:
        """Train and validation together: what a user has liked when test is ranked."""
        return self.train.union(self.valid) if len(self.valid) else self.train

    @cached_property
    def known(self) -> Interactions:
        """All pairs but those of test, liked or not: items that are not recommended again."""
        return self.seen if self.unliked is None else self.seen.union(self.unliked)

    def with_item_ids(self, item_ids: IdMap) -> Split:
        """The same pairs on ids that begin with theirs: the others are items without pairs."""
        train, valid, test = (
            replace(subset, item_ids=item_ids) for subset in (self.train, self.valid, self.test)
        )
        unliked = None if self.unliked is None else replace(self.unliked, item_ids=item_ids)
        return replace(self, train=train, valid=valid, test=test, unliked=unliked)

    def on_items(self, item_ids: IdMap, tags: Tags | None) -> Split:
        """The same pairs on ids that begin with theirs, of items with these tags; without sorting
        anything again."""
        train, valid, test = (
            subset.on_items(item_ids, tags) for subset in (self.train, self.valid, self.test)
        )
        unliked = None if self.unliked is None else self.unliked.on_items(item_ids, None)
        other = replace(self, train=train, valid=valid, test=test, unliked=unliked)
        seen = train if self.seen is self.train else self.seen.on_items(item_ids, tags)
        known = seen if self.known is self.seen else self.known.on_items(item_ids, tags)
        other.__dict__.update(seen=seen, known=known)
        return other

    def subsets(self) -> dict[str, Interactions]:
        """Every subset by its name, the empty ones too."""
        unliked = self.train.empty() if self.unliked is None else self.unliked
        return dict(zip(SUBSETS, (self.train, self.valid, self.test, unliked), strict=True))

    def with_tags(self, tags: Tags | None) -> Split:
        """The same pairs, whose items are known to have the tags that this makes."""
        train, valid, test = (
            replace(subset, tags=tags) for subset in (self.train, self.valid, self.test)
        )
        return replace(self, train=train, valid=valid, test=test)

    def learned(self, *, refit: bool) -> Interactions:
        """The pairs that a model has learned from, depending on whether it was fitted again on all
        of them."""
        return self.seen if refit else self.train


def no_split(interactions: Interactions, unliked: Interactions | None = None) -> Split:
    """A split with all pairs in train, for a model that is used but not measured."""
    nothing = interactions.empty()
    return Split(interactions, nothing, nothing, kind="none", unliked=unliked)


def all_in_train(split: Split) -> Split:
    """The same pairs, test and validation among them, all in train: for a model to deploy."""
    whole = split.seen.union(split.test) if len(split.test) else split.seen
    return no_split(whole, split.unliked)


def split_pairs(
    interactions: Interactions, kind: SplitKind = "ratio", ratio: float = 0.8, *, seed: int = 0
) -> Split:
    """Interactions split by `cuts`: at random, the latest of all, the last of each user, or all
    pairs of a tenth of the items or of the users.

    Test pairs of users or items that train does not know are dropped, and so are those ids; but a
    split by cold items keeps the items, and one by users the users.
    """
    check_fraction("ratio", ratio)
    store = PairStore.in_memory(interactions)
    dropped = cut_test(store, kind, ratio, seed)
    ids = interactions.user_ids.ids, interactions.item_ids.ids
    users, items = (degrees[TRAIN] > 0 for degrees in store.degrees())
    if kind == "cold-items":
        items = store.liked_degrees()[1] > 0
    elif kind == "users":
        users = store.liked_degrees()[0] > 0
    rows = PairRenumbering.of(*ids, users, items)
    # A random split leaves every item in train, and a user without any pair keeps their row.
    if kind == "ratio":
        rows = PairRenumbering.none(*ids)
    (pairs,) = store.read()
    train, valid, test, _ = (rows.interactions(pairs, subset) for subset in range(len(SUBSETS)))
    split = Split(train, valid, test, dropped, kind)
    kept, tags = rows.items.rows >= 0, interactions.tags
    return split if tags is None else split.with_tags(Tags(partial(_rows_of, tags, kept)))


def _rows_of(tags: Tags, kept: Mask) -> csr_array | None:
    matrix = tags()
    return None if matrix is None else matrix[kept]


def split_given(train: Interactions, test: Interactions, *, unknown: Unknown = "error") -> Split:
    """Two sets as they were published, on train's id maps; test pairs that train has are dropped.

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
    if not len(train):
        raise DataError("the training set holds no interaction")
    if not len(fresh):
        raise DataError(
            "the test set has no new interaction between users and items of the training set, so "
            "there is nothing to test on"
        )
    return Split(train, train.empty(), fresh, dropped=len(test) - len(fresh))


def hold_out_validation(
    split: Split, fraction: float = 0.1, *, seed: int, cut: ValidationCut = "random"
) -> Split:
    """Move `fraction` of each user's train pairs to validation, at random or by time: see
    `cut_validation`.

    Where users have too few pairs for that, some users give one. A user's or an item's only pair
    stays in train, so that validation may stay empty; one that is there is refused.
    """
    check_fraction("fraction", fraction)
    if len(split.valid):
        raise DataError("the split already has a validation set; it cannot get a second one")
    store = PairStore.in_memory(split.train)
    cut_validation(store, fraction, seed, cut)
    (labels,) = store.read("subset")
    held_out: Mask = labels["subset"] == VALID
    return replace(split, train=split.train.select(~held_out), valid=split.train.select(held_out))


def placed(pairs: Interactions, user_ids: IdMap, item_ids: IdMap) -> Interactions:
    """The pairs whose users and items are among these ids, on these ids."""
    users = _find(pairs.user_ids, user_ids)[pairs.users]
    items = _find(pairs.item_ids, item_ids)[pairs.items]
    known = (users >= 0) & (items >= 0)
    kept = pairs.select(known)
    optional = kept.timestamps, kept.weights
    return Interactions.build(users[known], items[known], user_ids, item_ids, *optional)


def take_back(split: Split, taken: Interactions) -> tuple[Split, int]:
    """The split without what was returned or hidden, and how many pairs that were. Of a pair with
    a weight, what is left of it stays."""
    gone = 0

    def without(pairs: Interactions) -> Interactions:
        nonlocal gone
        places = np.searchsorted(pairs.keys, (back := taken.select(contains(pairs, taken))).keys)
        kept = np.ones(len(pairs), dtype=bool)
        kept[places] = False
        if pairs.weights is not None and back.weights is not None:
            left = pairs.weights[places].astype(np.float64) - back.weights
            kept[places] = left > 1e-6 * pairs.weights[places]
            weights = pairs.weights.copy()
            weights[places] = np.maximum(left, 0)
            pairs = replace(pairs, weights=weights)
        gone += int(np.count_nonzero(~kept))
        return pairs.select(kept)

    train, valid, test = without(split.train), without(split.valid), without(split.test)
    if not len(train):
        raise DataError("the log takes back every interaction; nothing is left to learn from")
    return replace(split, train=train, valid=valid, test=test), gone


def contains(train: Interactions, test: Interactions) -> Mask:
    """For each pair of test, whether train has it; the two share their ids."""
    return np.isin(test.keys, train.keys, assume_unique=True)


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
