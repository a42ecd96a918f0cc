"""The files of a data set directory: the one place that writes and reads them.

dataset.json    format, name, kind of split, counts, train's fingerprint, where it came from
SUBSET.parquet  user and item as rows, and time and weight if there are any; none if it is empty
users.parquet   id; row r is user r
rest.parquet    ids, times and weights of pairs that train does not know; none if it is empty
items.parquet   id, and an item's attributes, typed; row r is item r
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.pairs.columns import Arrays, RowDigest
from ltocf.data.pairs.cuts import SPLIT_KINDS, SplitKind
from ltocf.data.pairs.store import SUBSETS
from ltocf.data.parquet_trial import refuse_unreadable
from ltocf.errors import DataError
from ltocf.storage.digests import FILE as DIGESTS
from ltocf.storage.digests import Digests, read_text

MARKER = "dataset.json"
REST_FILE = "rest.parquet"
FORMAT, VERSION = "ltocf-dataset", 1


def write_dataset(
    directory: Path,
    name: str,
    split_kind: SplitKind,
    subsets: Mapping[str, Iterable[Arrays]],
    users: pl.Series,
    items: pl.DataFrame,
    origin: Mapping[str, Any],
    rest: pl.DataFrame | None = None,
) -> dict[str, int]:
    """Write all files; a subset comes in pieces that ascend by user and item. Returns counts."""
    counts, fingerprint = {"users": len(users), "items": items.height}, ""
    # The fingerprint is of train alone: it names caches, such as spectra, that depend on nothing
    # else.
    for subset in SUBSETS:
        digest = _write_pairs(directory / f"{subset}.parquet", subsets[subset])
        counts[subset] = digest.length
        if subset == "train":
            fingerprint = digest.fingerprint(counts["users"], counts["items"])
    if rest is not None and rest.height:
        counts["rest"] = rest.height
        rest.write_parquet(directory / REST_FILE)
    users.rename("id").to_frame().write_parquet(directory / "users.parquet")
    items.write_parquet(directory / "items.parquet")
    about = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "split": split_kind,
        "counts": counts,
        "fingerprint": fingerprint,
        "origin": dict(origin),
    }
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (directory / MARKER).write_text(text, encoding="utf-8")
    return counts


def _write_pairs(path: Path, pieces: Iterable[Arrays]) -> RowDigest:
    """One Parquet file of all pieces, with a single piece in memory at a time."""
    digest = RowDigest()
    written: list[Path] = []
    for piece in pieces:
        digest.update(piece["user"], piece["item"], piece.get("weight"))
        if len(piece["user"]):
            written.append(path.with_name(f"{path.name}.{len(written)}"))
            # Not compressed: it is read once, right below, and then removed.
            pl.DataFrame(piece).write_parquet(written[-1], compression="uncompressed")
    if written:
        # Without globbing: a folder may be called 'shop [1]'.
        whole = pl.scan_parquet(written, glob=False)
        whole.sink_parquet(path, compression_level=1, engine="streaming")
    for file in written:
        file.unlink()
    return digest


def read_digests(directory: Path) -> Digests:
    try:
        return Digests.read(directory)
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(directory, f"{DIGESTS} cannot be read ({error})") from None


def read_description(directory: Path) -> dict[str, Any]:
    """dataset.json, checked."""
    try:
        about = json.loads(read_text(directory / MARKER))
    except (OSError, ValueError, RecursionError):
        raise DataError(
            f"{directory}: not a prepared data set (no readable {MARKER}); "
            "make one with 'ltocf prepare'"
        ) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise DataError(f"{directory}: {MARKER} does not describe a data set of ltocf")
    if about.get("version") != VERSION:
        raise DataError(
            f"{directory}: data set format {about.get('version')!r}, "
            f"but this ltocf reads {VERSION}; prepare it again"
        )
    kinds = {"name": str, "fingerprint": str, "origin": dict, "counts": dict}
    if not all(isinstance(about.get(key), kind) for key, kind in kinds.items()):
        raise damaged(directory, f"{MARKER} lacks entries")
    counts = about["counts"]
    if not all(isinstance(counts.get(key), int) for key in ("users", "items", *SUBSETS)):
        raise damaged(directory, f"{MARKER} lacks entries")
    if about.get("split") not in SPLIT_KINDS:
        raise damaged(directory, f"{MARKER} names an unknown split {about.get('split')!r}")
    return about


def read_table(directory: Path, name: str) -> pl.DataFrame:
    try:
        # A file whose digest was checked is one that we wrote. Any other may crash polars, so a
        # process of its own tries it first.
        if not (directory / DIGESTS).is_file():
            refuse_unreadable({directory / name: name})
        return pl.read_parquet(directory / name, glob=False)
    except (OSError, DataError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise damaged(directory, f"{name} cannot be read: {reason}") from None


def read_ids(directory: Path, table: pl.DataFrame) -> IdMap:
    if "id" not in table.columns:
        raise damaged(directory, "an id table has no column 'id'")
    return IdMap(table["id"])


def read_pairs(
    directory: Path, subset: str, counts: Mapping[str, int], user_ids: IdMap, item_ids: IdMap
) -> Interactions:
    """One subset, checked against its count and the ids."""
    name = f"{subset}.parquet"
    if not counts[subset]:
        nothing = np.empty(0, dtype=np.int32)
        return Interactions(nothing, nothing, user_ids, item_ids)
    table = read_table(directory, name)
    if not {"user", "item"} <= set(table.columns) or table.height != counts[subset]:
        raise damaged(directory, f"{name} is not the one that {MARKER} describes")
    users, items = (table[column].to_numpy() for column in ("user", "item"))
    for rows, ids in ((users, user_ids), (items, item_ids)):
        # Compiled kernels do not check bounds: a row out of range would read foreign memory.
        if rows.dtype != np.int32 or rows.min() < 0 or rows.max() >= len(ids):
            raise damaged(directory, f"{name} holds rows that no id belongs to")
    times, weights = (
        table[column].to_numpy() if column in table.columns else None
        for column in ("time", "weight")
    )
    return Interactions.build(users, items, user_ids, item_ids, times, weights)


def read_rest(directory: Path, counts: Mapping[str, int]) -> pl.DataFrame | None:
    """The pairs that were left out of test as train does not know them, with their ids."""
    if not counts.get("rest"):
        return None
    table = read_table(directory, REST_FILE)
    if not {"user", "item"} <= set(table.columns) or table.height != counts["rest"]:
        raise damaged(directory, f"{REST_FILE} is not the one that {MARKER} describes")
    return table


def damaged(directory: Path, what: str) -> DataError:
    return DataError(f"{directory}: damaged data set: {what}; prepare it again")
