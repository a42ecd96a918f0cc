"""A data set with a name: a split, what to show for its items, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.splits import SPLIT_KINDS, Split, SplitKind
from ltocf.digests import FILE as DIGESTS
from ltocf.digests import Digests, read_text
from ltocf.errors import DataError
from ltocf.files import new_directory

MARKER = "dataset.json"
FORMAT, VERSION = "ltocf-dataset", 1
PARTS = ("train", "valid", "test")
ATTEMPTS = 5  # to read a directory that others replace meanwhile


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
        parts = {part: len(getattr(self.split, part)) for part in PARTS}
        return {"users": train.n_users, "items": train.n_items, **parts}

    def save(self, directory: str | Path, *, overwrite: bool = False) -> None:
        """Write Parquet files and dataset.json; whole or not at all."""
        with new_directory(directory, marker=MARKER, overwrite=overwrite) as temporary:
            train = self.split.train
            for part in PARTS:
                if len(pairs := getattr(self.split, part)):
                    _pair_frame(pairs).write_parquet(temporary / f"{part}.parquet")
            train.user_ids.ids.to_frame().write_parquet(temporary / "users.parquet")
            items = train.item_ids.ids.to_frame()
            if self.item_names is not None:
                items = items.hstack(self.item_names.drop("id", strict=False))
            items.write_parquet(temporary / "items.parquet")
            description = describe(
                self.name, self.split_kind, self.counts, train.fingerprint, self.origin
            )
            (temporary / MARKER).write_text(description, encoding="utf-8")

    @classmethod
    def load(cls, directory: str | Path) -> Dataset:
        """Read what `save` wrote; a damaged or foreign directory is a DataError.

        One that another process replaces meanwhile is read again.
        """
        directory = Path(directory)
        for _ in range(ATTEMPTS):
            digests = _read_digests(directory)
            found: Dataset | DataError
            try:
                found = cls._load(directory, digests)
            except DataError as error:
                found = error
            if digests == _read_digests(directory):
                break
        if isinstance(found, DataError):
            raise found
        return found

    @classmethod
    def _load(cls, directory: Path, digests: Digests) -> Dataset:
        for name in digests.names():
            if (problem := digests.problem(name)) is not None:
                raise _damaged(directory, f"{name} {problem}")
        about = _read_description(directory)
        users, items = (_read_table(directory, f"{name}.parquet") for name in ("users", "items"))
        ids = _id_map(directory, users), _id_map(directory, items)
        train, valid, test = (_read_pairs(directory, part, about["counts"], *ids) for part in PARTS)
        split = Split(train, valid, test, kind=_split_kind(directory, about))
        if not len(train):
            raise _damaged(directory, "it has no training data")
        if split.train.fingerprint != about["fingerprint"]:
            raise _damaged(directory, "train.parquet does not match its fingerprint")
        display = items.drop("id")
        return cls(about["name"], split, display if display.width else None, about["origin"])


def describe(
    name: str,
    split_kind: SplitKind,
    counts: Mapping[str, int],
    fingerprint: str,
    origin: Mapping[str, Any],
) -> str:
    """The text of dataset.json."""
    about = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "split": split_kind,
        "counts": counts,
        "fingerprint": fingerprint,
        "origin": dict(origin),
    }
    return json.dumps(about, indent=2, ensure_ascii=False) + "\n"


def _pair_frame(pairs: Interactions) -> pl.DataFrame:
    columns: dict[str, NDArray[np.integer]] = {"user": pairs.users, "item": pairs.items}
    if pairs.timestamps is not None:
        columns["time"] = pairs.timestamps
    return pl.DataFrame(columns)


def _read_digests(directory: Path) -> Digests:
    try:
        return Digests.read(directory)
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(directory, f"{DIGESTS} cannot be read ({error})") from None


def _read_description(directory: Path) -> dict[str, Any]:
    try:
        about = json.loads(read_text(directory / MARKER))
    except (OSError, ValueError, RecursionError):
        raise DataError(
            f"{directory}: not a prepared data set (no readable {MARKER}); "
            "make one with 'ltocf prepare'"
        ) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise DataError(f"{directory}: {MARKER} is not that of a data set of ours")
    if about.get("version") != VERSION:
        raise DataError(
            f"{directory}: data set format {about.get('version')!r}, "
            f"but this ltocf reads {VERSION}; prepare it again"
        )
    kinds = {"name": str, "fingerprint": str, "origin": dict, "counts": dict}
    complete = all(isinstance(about.get(key), kind) for key, kind in kinds.items())
    counts = [about["counts"].get(key) for key in ("users", "items", *PARTS)] if complete else []
    if not complete or not all(isinstance(count, int) for count in counts):
        raise _damaged(directory, f"{MARKER} lacks entries")
    return about


def _split_kind(directory: Path, about: Mapping[str, Any]) -> SplitKind:
    """As written down; data sets from before it was have it among their options, if anywhere."""
    options = about["origin"].get("options", {})
    kind = about.get("split", options.get("split", "given"))
    if kind not in SPLIT_KINDS:
        raise _damaged(directory, f"{MARKER} names an unknown split {kind!r}")
    return kind  # type: ignore[no-any-return]


def _read_table(directory: Path, name: str) -> pl.DataFrame:
    try:
        return pl.read_parquet(directory / name)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise _damaged(directory, f"{name} cannot be read: {reason}") from None


def _id_map(directory: Path, table: pl.DataFrame) -> IdMap:
    if "id" not in table.columns:
        raise _damaged(directory, "an id table has no column 'id'")
    return IdMap(table["id"])


def _read_pairs(
    directory: Path, part: str, counts: Mapping[str, int], user_ids: IdMap, item_ids: IdMap
) -> Interactions:
    name = f"{part}.parquet"
    if not counts[part]:
        nothing = np.empty(0, dtype=np.int32)
        return Interactions(nothing, nothing, user_ids, item_ids)
    table = _read_table(directory, name)
    if not {"user", "item"} <= set(table.columns) or table.height != counts[part]:
        raise _damaged(directory, f"{name} is not the one that {MARKER} describes")
    users, items = (table[column].to_numpy() for column in ("user", "item"))
    for rows, ids in ((users, user_ids), (items, item_ids)):
        if rows.dtype != np.int32 or rows.min() < 0 or rows.max() >= len(ids):
            raise _damaged(directory, f"{name} holds rows that no id belongs to")
    times = table["time"].to_numpy() if "time" in table.columns else None
    return Interactions.build(users, items, user_ids, item_ids, times)


def _damaged(directory: Path, what: str) -> DataError:
    return DataError(f"{directory}: damaged data set: {what}; prepare it again")
