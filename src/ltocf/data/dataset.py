"""A data set with a name: a split, the attributes of its items, and where it came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ltocf.data.catalogue import Catalogue, ItemChange
from ltocf.data.dataset_files import (
    MARKER,
    damaged,
    read_description,
    read_digests,
    read_ids,
    read_pairs,
    read_rest,
    read_table,
    write_dataset,
)
from ltocf.data.interactions import Interactions, Tags
from ltocf.data.pairs.columns import Arrays
from ltocf.data.pairs.cuts import SplitKind
from ltocf.data.pairs.store import SUBSETS, Mask
from ltocf.data.splits import Split
from ltocf.data.times import TimeForm, unit_of_times
from ltocf.errors import DataError
from ltocf.machine.threads import refuse_forked
from ltocf.storage.digests import Digests, read_at_rest
from ltocf.storage.files import new_directory

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Dataset:
    """`item_names` holds the attributes of items, typed; its row r describes item r."""

    name: str
    split: Split
    item_names: pl.DataFrame | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)  # source, options, what was dropped
    # Pairs, by their ids, that were left out of test as train does not know their user or item.
    rest: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        """Attach the tags of items to the pairs, where models look for them."""
        if self.item_names is None and self.split.train.tags is None:
            return
        tags = Tags(partial(_tags, self.catalogue, self.split.train))
        object.__setattr__(self, "split", self.split.with_tags(tags))

    @property
    def split_kind(self) -> SplitKind:
        """How the test pairs were chosen; validation pairs should be chosen in the same way."""
        return self.split.kind

    @property
    def time_form(self) -> TimeForm:
        """The form of its times, if it has any: as recorded when it was prepared, or by their
        size."""
        recorded = (self.origin.get("times") or {}).get("form")
        known = unit_of_times(self.split.seen.timestamps) != "numbers"
        return recorded or ("moments" if known else "numbers")

    @property
    def time_order(self) -> str | None:
        """Whether its log has the day or the month first, if that had to be detected."""
        return (self.origin.get("times") or {}).get("order")

    @cached_property
    def catalogue(self) -> Catalogue:
        """The attributes of its items, touched or not."""
        return Catalogue.of(self.split.train.item_ids, self.item_names)

    def with_changes(self, changes: Sequence[ItemChange]) -> Dataset:
        """The same pairs with the catalogue after these changes; old items keep their rows.

        What models know of an item that somebody has touched stays; of the others they know what
        the catalogue says now. Cheap, for a service whose catalogue changes by the hour.
        """
        catalogue = self.catalogue.with_changes(changes)
        touched = np.zeros(len(catalogue), dtype=bool)
        touched[: len(self.catalogue)] = self.split.train.item_degrees > 0
        rows = catalogue.ids.find([change.item for change in changes])
        others = [one for one, row in zip(changes, rows, strict=True) if not touched[row]]
        as_learned = self.catalogue.with_changes(others)
        split = self.split.on_items(catalogue.ids, Tags(partial(_shared, as_learned, touched)))
        names = catalogue.table if catalogue.table.width else None
        changed = copy(self)
        vars(changed).update(split=split, item_names=names, catalogue=catalogue)
        vars(changed).pop("digest", None)
        return changed

    @cached_property
    def digest(self) -> str:
        """A digest of the pairs, their times and their ids: the same rows with other ids are
        different data."""
        digest, train = hashlib.sha256(), self.split.train
        for subset in self.split.subsets().values():
            digest.update(subset.fingerprint.encode())
            if subset.timestamps is not None:
                digest.update(subset.timestamps.tobytes())
        for ids in (train.user_ids, train.item_ids):
            digest.update(json.dumps(ids.ids.to_list()).encode())
        return digest.hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        train = self.split.train
        subsets = {name: len(subset) for name, subset in self.split.subsets().items()}
        return {"users": train.n_users, "items": train.n_items, **subsets}

    def save(self, directory: str | Path, *, overwrite: bool = False) -> None:
        """Write Parquet files and dataset.json; the directory is complete or absent."""
        train = self.split.train
        items = train.item_ids.ids.to_frame()
        if self.item_names is not None:
            items = items.hstack(self.item_names.drop("id", strict=False))
        with new_directory(directory, marker=MARKER, overwrite=overwrite) as temporary:
            write_dataset(
                temporary,
                self.name,
                self.split_kind,
                {name: [_arrays(subset)] for name, subset in self.split.subsets().items()},
                train.user_ids.ids,
                items,
                self.origin,
                self.rest,
            )

    @classmethod
    def load(cls, directory: str | Path) -> Dataset:
        """Read what `save` wrote; a damaged or foreign directory is a DataError.

        If another process replaces it in the meantime, it is read again.
        """
        refuse_forked()
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
            read_pairs(directory, subset, about["counts"], *ids) for subset in SUBSETS
        )
        if not len(train):
            raise damaged(directory, "it has no training data")
        if train.fingerprint != about["fingerprint"]:
            raise damaged(directory, "train.parquet does not match its fingerprint")
        split = Split(
            train, valid, test, kind=about["split"], unliked=unliked if len(unliked) else None
        )
        display = items.drop("id")
        rest = read_rest(directory, about["counts"])
        return cls(about["name"], split, display if display.width else None, about["origin"], rest)


def _tags(catalogue: Catalogue, train: Interactions) -> csr_array | None:
    """The tags of all items: from the catalogue if it has any attribute, else those that the pairs
    came with, unless items were added since."""
    if catalogue.table.width:
        return _shared(catalogue, train.item_degrees > 0)
    tags = train.item_tags
    return tags if tags is not None and tags.nnz and tags.shape[0] == train.n_items else None


def _shared(catalogue: Catalogue, touched: Mask) -> csr_array | None:
    """The tags that at least two of the touched items have: one of a single item carries no
    information. Other items do not count, so that one that is added later changes nothing for the
    others."""
    tags = catalogue.tags(at_least=2, among=touched).matrix
    return tags if tags.nnz else None


def _arrays(pairs: Interactions) -> Arrays:
    columns: Arrays = {"user": pairs.users, "item": pairs.items}
    if pairs.timestamps is not None:
        columns["time"] = pairs.timestamps
    if pairs.weights is not None:
        columns["weight"] = pairs.weights
    return columns
