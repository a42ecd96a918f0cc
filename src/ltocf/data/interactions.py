"""Who touched what: rows of users and items, and the caller's ids for those rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.row_arrays import RowDigest, distinct
from ltocf.data.row_arrays import Rows as Rows  # most callers know it from here
from ltocf.errors import DataError

Id = str | int


class IdMap:
    """The caller's ids and our rows 0..n-1, both ways. Ids are all integers or all strings.

    Integers that do not fit 64 signed bits are held as strings; `find` takes them either way.
    """

    def __init__(self, ids: pl.Series | Sequence[Id]) -> None:
        series = ids if isinstance(ids, pl.Series) else pl.Series("id", list(ids))
        self.ids = _as_ids(series.rename("id"))
        if self.ids.null_count():
            raise DataError(f"id {self.ids.is_null().arg_max()} of {len(self.ids)} is null")
        if self.ids.n_unique() < len(self.ids):
            again = self.ids.filter(self.ids.is_duplicated())[0]
            raise DataError(f"id {shorten_id(again)} appears twice in one id map")

    @classmethod
    def range(cls, n: int) -> IdMap:
        return cls(pl.int_range(n, eager=True))

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdMap) and self.ids.equals(other.ids)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _row_of(self) -> dict[Id, int]:
        return {id_: row for row, id_ in enumerate(self.ids.to_list())}

    def find(self, ids: Iterable[Id]) -> Rows:
        """The row of each id, -1 where it is unknown. '42' finds the integer id 42 and back."""
        as_key = _as_integer if self.ids.dtype == pl.Int64 else str
        return np.array([self._row_of.get(as_key(id_), -1) for id_ in ids], dtype=np.int32)

    def rows(self, ids: Iterable[Id], *, kind: str) -> Rows:
        """The row of each id; an unknown one is a DataError that calls it a `kind`."""
        ids = list(ids)
        rows = self.find(ids)
        if len(unknown := np.flatnonzero(rows < 0)):
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            first = shorten_id(ids[unknown[0]])
            raise DataError(f"unknown {kind} {first}{more}: not in the training data")
        return rows

    def __getitem__(self, rows: NDArray[np.integer]) -> list[Id]:
        return self.ids.gather(np.asarray(rows, dtype=np.int64)).to_list()

    def select(self, rows: NDArray[np.integer]) -> IdMap:
        """The ids of these rows, in this order, as a map of their own."""
        return IdMap(self.ids.gather(np.asarray(rows, dtype=np.int64)))

    def extended(self, ids: Sequence[Id]) -> IdMap:
        """These ids, then the given ones that are new, in their order; all strings if one is."""
        new = [id_ for id_, row in zip(ids, self.find(ids), strict=True) if row < 0]
        if not new:
            return self
        if self.ids.dtype == pl.Int64:
            new = [_as_integer(id_) for id_ in new]
            if all(isinstance(id_, int) for id_ in new):
                return IdMap([*self.ids.to_list(), *new])
        return IdMap([*map(str, self.ids.to_list()), *map(str, new)])


def _as_ids(series: pl.Series) -> pl.Series:
    if series.dtype.is_integer():
        try:
            return series.cast(pl.Int64)
        except pl.exceptions.InvalidOperationError:  # above 2^63
            return series.cast(pl.String)
    return series.cast(pl.String)


def _as_integer(id_: Id) -> Id:
    """The integer that is written exactly so, if there is one: '42' is 42, but '042' is not."""
    try:
        return value if str(value := int(id_)) == str(id_) else id_
    except ValueError:
        return id_


def shorten_id(id_: Id) -> str:
    """For messages: an id may be ten megabytes long."""
    text = repr(id_)
    return text if len(text) <= 80 else f"{text[:60]}...({len(text)} characters)"


@dataclass(frozen=True, eq=False)
class Interactions:
    """Distinct (user, item) pairs, sorted by user and then item: a CSR matrix in disguise."""

    users: Rows  # (n,)
    items: Rows  # (n,)
    user_ids: IdMap
    item_ids: IdMap
    timestamps: NDArray[np.int64] | None = None  # (n,) of the first time each pair was seen
    weights: NDArray[np.float32] | None = None  # (n,) how strong: plays, a rating; above 0

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
        key = users.astype(np.int64) * max(len(item_map), 1) + items
        if len(key) and not np.all(key[1:] > key[:-1]):
            order, first = distinct(key)
            users, items = users[order[first]], items[order[first]]
            if timestamps is not None:
                timestamps = np.minimum.reduceat(timestamps[order], first)
            if weights is not None:
                weights = np.add.reduceat(weights[order], first)
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
        """The share of all pairs of a user and an item that are there."""
        return len(self) / max(self.n_users * self.n_items, 1)

    @property
    def pairs_per_user(self) -> float:
        return len(self) / max(self.n_users, 1)

    @property
    def pairs_per_node(self) -> float:
        """A node of the graph is a user or an item."""
        return len(self) / max(self.n_users + self.n_items, 1)

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """User u's items are `items[indptr[u]:indptr[u + 1]]`, ascending. (n_users + 1,)"""
        counts = np.bincount(self.users, minlength=self.n_users)
        return np.concatenate([[0], np.cumsum(counts)])

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
            raise DataError("nobody knows what came later: these interactions have no times")
        order = np.lexsort((self.timestamps, self.users))
        users, times = self.users[order], self.timestamps[order]
        changes = (users[1:] != users[:-1]) | (times[1:] != times[:-1])
        ends = np.append(np.flatnonzero(changes) + 1, len(order))  # of runs of one user and time
        later = np.empty(len(order), dtype=np.int64)
        later[order] = self.indptr[users + 1] - np.repeat(ends, np.diff(ends, prepend=0))
        return later

    def select(self, mask: NDArray[np.bool_]) -> Interactions:
        """The pairs where `mask` holds, with the same ids."""
        return replace(
            self,
            users=self.users[mask],
            items=self.items[mask],
            timestamps=None if self.timestamps is None else self.timestamps[mask],
            weights=None if self.weights is None else self.weights[mask],
        )

    def union(self, other: Interactions) -> Interactions:
        """The pairs of either, which must share their ids; times and weights if both have them."""
        return Interactions.build(
            np.concatenate([self.users, other.users]),
            np.concatenate([self.items, other.items]),
            self.user_ids,
            self.item_ids,
            _joined(self.timestamps, other.timestamps),
            _joined(self.weights, other.weights),
        )

    @cached_property
    def strengths(self) -> NDArray[np.float32] | None:
        """How much each pair counts, if there are weights: log2(1 + weight). (n,)

        Plays and purchases are heavy-tailed: 1, 3, 7 and 15 of them count 1, 2, 3 and 4.
        """
        return None if self.weights is None else np.log2(1 + self.weights)

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
        """Changes when a pair, a weight or the number of users or items does; names caches."""
        digest = RowDigest()
        digest.update(self.users, self.items, self.weights)
        return digest.fingerprint(self.n_users, self.n_items)


Column = TypeVar("Column", NDArray[np.int64], NDArray[np.float32])


def _joined(one: Column | None, other: Column | None) -> Column | None:
    return None if one is None or other is None else np.concatenate([one, other])
