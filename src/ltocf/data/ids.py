"""The caller's ids for our rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.pairs.columns import Rows
from ltocf.errors import DataError

Id = str | int
HINTS = {
    "user": "; for somebody new, recommend from what they have: recommend_new([...]), or 'ltocf "
    "recommend RUN --history ITEM,ITEM'"
}


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
        """The row of each id, -1 where it is unknown. '42' matches the integer id 42 and the other
        way round."""
        row_of, as_key = self._row_of, self._as_key
        return np.array([row_of.get(as_key(id_), -1) for id_ in ids], dtype=np.int32)

    @cached_property
    def _as_key(self) -> Callable[[Id], Id]:
        return _as_integer if self.ids.dtype == pl.Int64 else str

    def rows(self, ids: Iterable[Id], *, kind: str) -> Rows:
        """The row of each id; an unknown one is a DataError that calls it a `kind`."""
        ids = list(ids)
        rows = self.find(ids)
        if len(unknown := np.flatnonzero(rows < 0)):
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            first = shorten_id(ids[unknown[0]])
            hint = HINTS.get(kind, "")
            raise DataError(f"unknown {kind} {first}{more}: not in the training data{hint}")
        return rows

    def __getitem__(self, rows: NDArray[np.integer]) -> list[Id]:
        return self.ids.gather(np.asarray(rows, dtype=np.int64)).to_list()

    def column(self, rows: NDArray[np.integer], name: str) -> pl.Series:
        """The ids of these rows, as a column of a table."""
        # One row is cut out in a twentieth of the time that it takes to gather it.
        some = self.ids.slice(int(rows[0]), 1) if len(rows) == 1 else self.ids[rows]
        return some.rename(name)

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
            if all(map(is_integer_id, new)):
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


def is_integer_id(id_: Id) -> bool:
    """Whether the id can be a 64-bit integer: 42 and '42' can, '042' and 2^63 cannot."""
    value = _as_integer(id_)
    return isinstance(value, int) and -(2**63) <= value < 2**63


def shorten_id(id_: Id) -> str:
    """For messages: an id may be ten megabytes long."""
    text = repr(id_)
    return text if len(text) <= 80 else f"{text[:60]}...({len(text)} characters)"
