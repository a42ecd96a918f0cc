"""Recommender: ids in, ids out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ltocf.checkpoint import Run
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Id, Rows
from ltocf.models.base import Model
from ltocf.ranking import Ranked, check_k, top_k


class Recommender:
    """A trained model with the ids of its data."""

    def __init__(self, model: Model, dataset: Dataset) -> None:
        self.model, self.dataset = model, dataset
        self.scorer = model.scorer()

    @classmethod
    def load(cls, run: str | Path) -> Recommender:
        opened = Run.open(Path(run))
        return cls(opened.load(), opened.dataset)

    def recommend(
        self, users: Sequence[Id], k: int = 10, *, keep_seen: bool = False
    ) -> pl.DataFrame:
        """Each user's k best items, best first: columns user, rank, item, score and what the data
        set has to display of an item. Items he already has are left out unless `keep_seen`."""
        seen = self.dataset.split.seen
        check_k(k, seen.n_items)
        rows = seen.user_ids.rows(users, kind="user")
        ranked = top_k(self.scorer, rows, k, n_items=seen.n_items, seen=None if keep_seen else seen)
        return self._frame(users, ranked)

    def _frame(self, users: Sequence[Id], ranked: Ranked) -> pl.DataFrame:
        found = ranked.items >= 0
        owner, rank = np.nonzero(found)
        items: Rows = ranked.items[found]
        frame = pl.DataFrame(
            {
                "user": pl.Series(list(users)).gather(owner),
                "rank": rank + 1,
                "item": self.dataset.split.train.item_ids.ids.gather(items),
                "score": ranked.scores[found],
            }
        )
        names = self.dataset.item_names
        return frame if names is None else frame.hstack(names[items])
