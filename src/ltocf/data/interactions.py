"""Who touched what: rows of users and items, and the caller's ids for those rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ltocf.data.ids import Id as Id
from ltocf.data.ids import IdMap as IdMap
from ltocf.data.ids import shorten_id as shorten_id
from ltocf.data.pairs.columns import RowDigest, distinct, pair_keys
from ltocf.data.pairs.columns import Rows as Rows  # re-exported: most callers import it from here
from ltocf.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Tags:
    """What items are, as ones (n_items, n_tags): made when they are first asked for, since that
    takes SciPy and most commands do without. What they are made of is then let go."""

    def __init__(self, make: Callable[[], csr_array | None] | None) -> None:
        self._make = make
        self._matrix: csr_array | None = None

    @classmethod
    def of(cls, matrix: csr_array) -> Tags:
        made = cls(None)
        made._matrix = matrix
        return made

    def __call__(self) -> csr_array | None:
        make = self._make  # another thread may be here too: both make the same
        if make is not None:
            self._matrix, self._make = make(), None
        return self._matrix


@dataclass(frozen=True, eq=False)
class Interactions:
    """Distinct (user, item) pairs, sorted by user and then item: in effect a CSR matrix."""

    users: Rows  # (n,)
    items: Rows  # (n,)
    user_ids: IdMap
    item_ids: IdMap
    timestamps: NDArray[np.int64] | None = None  # (n,) when each pair was first seen
    weights: NDArray[np.float32] | None = None  # (n,) how strong: plays, a rating; above 0
    tags: Tags | None = None  # makes `item_tags`; None: there are none

    @classmethod
    def build(
        cls,
        users: NDArray[np.integer],
        items: NDArray[np.integer],
        user_ids: IdMap | int,
        item_ids: IdMap | int,
        timestamps: NDArray[np.int64] | None = None,
        weights: NDArray[np.float32] | None = None,
    ) -> Interactions:
        """Sort the pairs and merge duplicates: first times are kept, weights add up."""
        user_map = IdMap.range(user_ids) if isinstance(user_ids, int) else user_ids
        item_map = IdMap.range(item_ids) if isinstance(item_ids, int) else item_ids
        key = pair_keys(users, items, len(item_map))
        if len(key) and not np.all(key[1:] > key[:-1]):
            order, first = distinct(key)
            users, items = users[order[first]], items[order[first]]
            if timestamps is not None:
                timestamps = np.minimum.reduceat(timestamps[order], first)
            if weights is not None:
                total = np.add.reduceat(weights[order].astype(np.float64), first)
                weights = np.minimum(total, np.finfo(np.float32).max).astype(np.float32)
        if weights is not None and not np.all((weights > 0) & np.isfinite(weights)):
            raise DataError(
                "weights must be finite numbers above 0; leave out pairs without such a weight"
            )
        rows = users.astype(np.int32), items.astype(np.int32)
        return cls(*rows, user_map, item_map, timestamps, weights)

    def __len__(self) -> int:
        return len(self.users)

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def density(self) -> float:
        """The share of all possible pairs that occurred."""
        return len(self) / max(self.n_users * self.n_items, 1)

    @property
    def pairs_per_user(self) -> float:
        return len(self) / max(self.n_users, 1)

    @property
    def pairs_per_node(self) -> float:
        """A node of the graph is a user or an item."""
        return len(self) / max(self.n_users + self.n_items, 1)

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """One ascending number for each pair: `pair_keys`. (n,)"""
        return pair_keys(self.users, self.items, self.n_items)

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """User u's items are `items[indptr[u]:indptr[u + 1]]`, ascending. (n_users + 1,)"""
        counts = np.bincount(self.users, minlength=self.n_users)
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def item_tags(self) -> csr_array | None:
        """Which item has which tag, touched or not: a matrix of ones. (n_items, n_tags)"""
        return None if self.tags is None else self.tags()

    def with_item_tags(self, tags: csr_array | None) -> Interactions:
        """The same pairs, whose items have these tags. (n_items, n_tags)"""
        return replace(self, tags=None if tags is None else Tags.of(tags))

    def items_of(self, user: int) -> Rows:
        return self.items[self.indptr[user] : self.indptr[user + 1]]

    @cached_property
    def user_degrees(self) -> NDArray[np.int64]:
        return np.diff(self.indptr)

    @cached_property
    def item_degrees(self) -> NDArray[np.int64]:
        return np.bincount(self.items, minlength=self.n_items)

    @cached_property
    def later_counts(self) -> NDArray[np.int64]:
        """How many of the same user's pairs came after each one; needs timestamps. (n,)"""
        if self.timestamps is None:
            raise DataError("these interactions have no times, so their order is unknown")
        order = np.lexsort((self.timestamps, self.users))
        users, times = self.users[order], self.timestamps[order]
        changes = (users[1:] != users[:-1]) | (times[1:] != times[:-1])
        # Ends of runs of equal user and time.
        ends = np.append(np.flatnonzero(changes) + 1, len(order))
        later = np.empty(len(order), dtype=np.int64)
        later[order] = self.indptr[users + 1] - np.repeat(ends, np.diff(ends, prepend=0))
        return later

    def on_items(self, item_ids: IdMap, tags: Tags | None) -> Interactions:
        """The same pairs on ids that begin with theirs: the others are items without pairs. Cached
        counts by user are kept."""
        other = replace(self, item_ids=item_ids, tags=tags)
        by_user = ("indptr", "user_degrees", "strengths", "user_strengths", "later_counts")
        other.__dict__.update({name: vars(self)[name] for name in by_user if name in vars(self)})
        return other

    def select(self, mask: NDArray[np.bool_]) -> Interactions:
        """The pairs where `mask` holds, with the same ids."""
        return replace(
            self,
            users=self.users[mask],
            items=self.items[mask],
            timestamps=None if self.timestamps is None else self.timestamps[mask],
            weights=None if self.weights is None else self.weights[mask],
        )

    def empty(self) -> Interactions:
        """No pairs, with the same ids."""
        return self.select(np.zeros(len(self), dtype=bool))

    def union(self, other: Interactions) -> Interactions:
        """The pairs of either, which must share their ids; times and weights if both have them."""
        both = Interactions.build(
            np.concatenate([self.users, other.users]),
            np.concatenate([self.items, other.items]),
            self.user_ids,
            self.item_ids,
            _joined(self.timestamps, other.timestamps),
            _joined(self.weights, other.weights),
        )
        return replace(both, tags=self.tags)

    @cached_property
    def strengths(self) -> NDArray[np.float32] | None:
        """How much each pair counts, if there are weights: log2(1 + weight). (n,)

        Plays and purchases are heavy-tailed: 1, 3, 7 and 15 of them count 1, 2, 3 and 4.
        """
        if self.weights is None:
            return None
        # Never 0, which a weight below 6e-8 would round to, because sums of strengths are divisors.
        return np.maximum(np.log2(1 + self.weights.astype(np.float64)), 1e-6).astype(np.float32)

    @cached_property
    def user_strengths(self) -> NDArray[np.float64]:
        """The sum over each user's pairs, which without weights is their number. (n_users,)"""
        return np.bincount(self.users, self.strengths, minlength=self.n_users).astype(np.float64)

    @cached_property
    def item_strengths(self) -> NDArray[np.float64]:
        """The sum over each item's pairs, which without weights is their number. (n_items,)"""
        return np.bincount(self.items, self.strengths, minlength=self.n_items).astype(np.float64)

    @cached_property
    def fingerprint(self) -> str:
        """A digest that changes with any pair, weight, or number of users or items. It names
        caches."""
        digest = RowDigest()
        digest.update(self.users, self.items, self.weights)
        return digest.fingerprint(self.n_users, self.n_items)


Column = TypeVar("Column", NDArray[np.int64], NDArray[np.float32])


def _joined(one: Column | None, other: Column | None) -> Column | None:
    return None if one is None or other is None else np.concatenate([one, other])
