"""Codes: whole numbers for ids of any kind, given in the order in which ids are met."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray


class Codes:
    """Numbers that polars gives to ids as it meets them, the same ones while this object lives."""

    def __init__(self) -> None:
        self.dtype = pl.Categorical(pl.Categories.random())
        self._anchor = pl.Series(dtype=self.dtype)  # unused categories are forgotten
        self._noted = np.zeros(0, dtype=bool)
        self.typed_as_integers = True

    def note(self, codes: pl.Series) -> NDArray[np.uint32]:
        """Note the ids of a column and return their codes as an array."""
        numbers = codes.to_numpy()
        end = int(numbers.max()) + 1 if len(numbers) else 0
        if (missing := end - len(self._noted)) > 0:
            room = np.zeros(max(missing, len(self._noted)), dtype=bool)
            self._noted = np.concatenate([self._noted, room])
        self._noted[numbers] = True
        return numbers

    def ids(self) -> pl.Series:
        """The id of each noted code, in order of the codes."""
        codes = pl.Series(np.flatnonzero(self._noted).astype(np.uint32))
        return codes.cat.to(self.dtype).cast(pl.String).rename("id")

    def ranked(self) -> tuple[pl.Series, NDArray[np.int32]]:
        """The ids, ascending, and the rank of each code among them, -1 for one that was never
        noted: polars also numbers the ids of rows that are then passed over."""
        ids = _as_integers(self.ids()) if self.typed_as_integers else self.ids()
        order = ids.arg_sort().to_numpy()
        rank = np.full(len(self._noted), -1, dtype=np.int32)
        rank[np.flatnonzero(self._noted)[order]] = np.arange(len(ids), dtype=np.int32)
        return ids.gather(order), rank


def _as_integers(ids: pl.Series) -> pl.Series:
    """The ids as integers if every one is written as integers are, and as they are if not.

    Numbers that all end in '.0' are integers too: pandas writes them so where one is missing.
    """
    without_point = ids.str.strip_suffix(".0") if ids.str.ends_with(".0").all() else ids
    numbers = without_point.cast(pl.Int64, strict=False)
    return numbers if numbers.cast(pl.String).eq_missing(without_point).all() else ids
