"""A data set with a name: a split, what to show for its items, and where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import polars as pl

from ltocf.data.dataset_files import (
    MARKER,
    damaged,
    read_description,
    read_digests,
    read_ids,
    read_pairs,
    read_table,
    write_dataset,
)
from ltocf.data.interactions import Interactions
from ltocf.data.pair_columns import Arrays
from ltocf.data.pair_cuts import SplitKind
from ltocf.data.pair_store import PARTS
from ltocf.data.splits import Split
from ltocf.digests import Digests, read_at_rest
from ltocf.errors import DataError
from ltocf.files import new_directory


@dataclass(frozen=True, eq=False)
class Dataset:
    """`item_names` holds columns to display; its row r describes item r."""

    name: str
    split: Split
    item_names: pl.DataFrame | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)  # source, options, what was dropped

    @property
    def split_kind(self) -> SplitKind:
        """How the test pairs were chosen, which is how validation pairs should be."""
        return self.split.kind

    @property
    def counts(self) -> dict[str, int]:
        train = self.split.train
        parts = {name: len(part) for name, part in self.split.parts().items()}
        return {"users": train.n_users, "items": train.n_items, **parts}

    def save(self, directory: str | Path, *, overwrite: bool = False) -> None:
        """Write Parquet files and dataset.json; whole or not at all."""
        train = self.split.train
        items = train.item_ids.ids.to_frame()
        if self.item_names is not None:
            items = items.hstack(self.item_names.drop("id", strict=False))
        with new_directory(directory, marker=MARKER, overwrite=overwrite) as temporary:
            write_dataset(
                temporary,
                self.name,
                self.split_kind,
                {name: [_arrays(part)] for name, part in self.split.parts().items()},
                train.user_ids.ids,
                items,
                self.origin,
            )

    @classmethod
    def load(cls, directory: str | Path) -> Dataset:
        """Read what `save` wrote; a damaged or foreign directory is a DataError.

        One that another process replaces meanwhile is read again.
        """
        directory = Path(directory)
        return read_at_rest(
            partial(cls._load, directory), partial(read_digests, directory), eq, DataError
        )

    @classmethod
    def _load(cls, directory: Path, digests: Digests) -> Dataset:
        for name in digests.names():
            if (problem := digests.problem(name)) is not None:
                raise damaged(directory, f"{name} {problem}")
        about = read_description(directory)
        users, items = (read_table(directory, f"{name}.parquet") for name in ("users", "items"))
        ids = read_ids(directory, users), read_ids(directory, items)
        train, valid, test, unliked = (
            read_pairs(directory, part, about["counts"], *ids) for part in PARTS
        )
        if not len(train):
            raise damaged(directory, "it has no training data")
        if train.fingerprint != about["fingerprint"]:
            raise damaged(directory, "train.parquet does not match its fingerprint")
        split = Split(
            train, valid, test, kind=about["split"], unliked=unliked if len(unliked) else None
        )
        display = items.drop("id")
        return cls(about["name"], split, display if display.width else None, about["origin"])


def _arrays(pairs: Interactions) -> Arrays:
    columns: Arrays = {"user": pairs.users, "item": pairs.items}
    if pairs.timestamps is not None:
        columns["time"] = pairs.timestamps
    if pairs.weights is not None:
        columns["weight"] = pairs.weights
    return columns
