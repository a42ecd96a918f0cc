"""Remove people from a data set, with all of their pairs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Id, Interactions
from ltocf.data.splits import placed
from ltocf.errors import DataError


def without_users(pairs: Interactions, users: Collection[Id]) -> Interactions:
    """The pairs of everybody else, on the ids of everybody else."""
    if not users:
        return pairs
    gone = set(pairs.user_ids.find(users).tolist())
    left = [row for row in range(pairs.n_users) if row not in gone]
    return placed(pairs, pairs.user_ids.select(np.array(left, dtype=np.int64)), pairs.item_ids)


def forget_users(dataset: Dataset, users: Collection[Id]) -> tuple[Dataset, NDArray[np.bool_]]:
    """The data set without any trace of these users, and which of its users are left."""
    user_ids = dataset.split.train.user_ids
    kept = np.ones(len(user_ids), dtype=bool)
    rows = user_ids.find(users)
    kept[rows[rows >= 0]] = False
    rest = _without(dataset.rest, users)
    if kept.all():
        return replace(dataset, rest=rest), kept
    left, split = user_ids.select(np.flatnonzero(kept)), dataset.split

    def without(subset: Interactions) -> Interactions:
        return placed(subset, left, subset.item_ids)

    train, valid, test = without(split.train), without(split.valid), without(split.test)
    if not len(train):
        raise DataError("without these users there is nothing left to learn from")
    unliked = None if split.unliked is None else without(split.unliked)
    split = replace(split, train=train, valid=valid, test=test, unliked=unliked)
    return replace(dataset, split=split, rest=rest), kept


def _without(rest: pl.DataFrame | None, users: Collection[Id]) -> pl.DataFrame | None:
    if rest is None:
        return None
    left = rest.filter(~pl.col("user").cast(pl.String).is_in([str(user) for user in users]))
    return left if left.height else None
