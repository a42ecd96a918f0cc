"""What is left of users and items, and the new row of each old one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.pairs.keys import Rows
from ltocf.data.pairs.store import Mask, Pairs, take


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
