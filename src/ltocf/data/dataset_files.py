"""The files of a data set directory: the one place that writes and reads them.

dataset.json    format, name, kind of split, counts, train's fingerprint, where it came from
PART.parquet    user and item as rows, and time and weight if there are any; none if it is empty
users.parquet   id; row r is user r
items.parquet   id, and columns to display
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.pair_columns import Arrays
from ltocf.data.pair_cuts import SPLIT_KINDS, SplitKind
from ltocf.data.pair_store import PARTS
from ltocf.data.parquet_trial import refuse_unreadable
from ltocf.data.row_arrays import RowDigest
from ltocf.digests import FILE as DIGESTS
from ltocf.digests import Digests, read_text
from ltocf.errors import DataError

MARKER = "dataset.json"
FORMAT, VERSION = "ltocf-dataset", 1


def write_dataset(
    directory: Path,
    name: str,
    split_kind: SplitKind,
    parts: Mapping[str, Iterable[Arrays]],
    users: pl.Series,
    items: pl.DataFrame,
    origin: Mapping[str, Any],
) -> dict[str, int]:
    """Write all files; a part comes in pieces that ascend by user and item. Returns the counts."""
    counts, fingerprint = {"users": len(users), "items": items.height}, ""
    for part in PARTS:
        digest = _write_pairs(directory / f"{part}.parquet", parts[part])
        counts[part] = digest.length
        if part == "train":
            fingerprint = digest.fingerprint(counts["users"], counts["items"])
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
            pl.DataFrame(piece).write_parquet(written[-1], compression="uncompressed")
    if written:
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
        raise DataError(f"{directory}: {MARKER} is not that of a data set of ours")
    if about.get("version") != VERSION:
        raise DataError(
            f"{directory}: data set format {about.get('version')!r}, "
            f"but this ltocf reads {VERSION}; prepare it again"
        )
    kinds = {"name": str, "fingerprint": str, "origin": dict, "counts": dict}
    if not all(isinstance(about.get(key), kind) for key, kind in kinds.items()):
        raise damaged(directory, f"{MARKER} lacks entries")
    counts, options = about["counts"], about["origin"].get("options")
    # Data sets from before they were written down have no unliked pairs, and the kind of split
    # among their options, if anywhere.
    counts.setdefault("unliked", 0)
    about.setdefault("split", (options if isinstance(options, dict) else {}).get("split", "given"))
    if not all(isinstance(counts.get(key), int) for key in ("users", "items", *PARTS)):
        raise damaged(directory, f"{MARKER} lacks entries")
    if about["split"] not in SPLIT_KINDS:
        raise damaged(directory, f"{MARKER} names an unknown split {about['split']!r}")
    return about


def read_table(directory: Path, name: str) -> pl.DataFrame:
    try:
        if not (directory / DIGESTS).is_file():
            refuse_unreadable({directory / name: name})
        return pl.read_parquet(directory / name)
    except (OSError, DataError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise damaged(directory, f"{name} cannot be read: {reason}") from None


def read_ids(directory: Path, table: pl.DataFrame) -> IdMap:
    if "id" not in table.columns:
        raise damaged(directory, "an id table has no column 'id'")
    return IdMap(table["id"])


def read_pairs(
    directory: Path, part: str, counts: Mapping[str, int], user_ids: IdMap, item_ids: IdMap
) -> Interactions:
    """One part, checked against its count and the ids."""
    name = f"{part}.parquet"
    if not counts[part]:
        nothing = np.empty(0, dtype=np.int32)
        return Interactions(nothing, nothing, user_ids, item_ids)
    table = read_table(directory, name)
    if not {"user", "item"} <= set(table.columns) or table.height != counts[part]:
        raise damaged(directory, f"{name} is not the one that {MARKER} describes")
    users, items = (table[column].to_numpy() for column in ("user", "item"))
    for rows, ids in ((users, user_ids), (items, item_ids)):
        if rows.dtype != np.int32 or rows.min() < 0 or rows.max() >= len(ids):
            raise damaged(directory, f"{name} holds rows that no id belongs to")
    times, weights = (
        table[column].to_numpy() if column in table.columns else None
        for column in ("time", "weight")
    )
    return Interactions.build(users, items, user_ids, item_ids, times, weights)


def damaged(directory: Path, what: str) -> DataError:
    return DataError(f"{directory}: damaged data set: {what}; prepare it again")
