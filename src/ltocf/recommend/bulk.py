"""Everybody's list in one file: in parts, so that an interrupted job goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ltocf.available import require_memory
from ltocf.data.interactions import Id
from ltocf.distributed import count, is_first, joined_rows, rank, wait
from ltocf.errors import DataError
from ltocf.files import refuse_file, remove, replacing, writing
from ltocf.progress import Progress, silent
from ltocf.ranking.top_k import length_of_list, tile_bytes
from ltocf.recommend.ids import TABLES
from ltocf.recommend.recommender import Recommender

PART_USERS = 8192
TILES = 4  # scores, the same filtered, their masked copy, and some to spare
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class BulkReport:
    output: str
    users: int
    rows: int
    resumed: int  # users whose lists were there from an interrupted job


def recommend_all(
    recommender: Recommender,
    output: Path,
    k: int = 10,
    *,
    keep_seen: bool = False,
    candidates: Iterable[Id] | None = None,
    exclude: Iterable[Id] = (),
    overwrite: bool = False,
    progress: Progress = silent,
) -> BulkReport:
    """Write `recommend` of every user to a Parquet or CSV file, in the order of their rows.

    Memory does not grow with the users: lists go to OUTPUT.parts first, and a job that is started
    again after an interruption makes only the missing ones.
    """
    refuse_file(output, overwrite=overwrite, kinds=TABLES)
    k = length_of_list(k, recommender.fitted.seen.n_items)
    require_memory(
        TILES * tile_bytes(recommender.fitted.seen.n_items),
        f"recommending among {recommender.fitted.seen.n_items:,} items",
        "use a machine with more",
    )
    allowed = None if candidates is None else list(candidates)
    denied = list(exclude)
    with writing(output) if is_first() else nullcontext():
        return _recommend_all(
            recommender, output, k, keep_seen, allowed, denied, overwrite, progress
        )


def write_table(table: pl.DataFrame, output: Path) -> None:
    """One small table as the kind of file that its name asks for."""
    with replacing(output) as temporary:
        if output.suffix == ".csv":
            table.write_csv(temporary)
        else:
            table.write_parquet(temporary)


def _recommend_all(
    recommender: Recommender,
    output: Path,
    k: int,
    keep_seen: bool,
    allowed: list[Id] | None,
    denied: list[Id],
    overwrite: bool,
    progress: Progress,
) -> BulkReport:
    parts = output.with_name(f"{output.name}.parts")
    if is_first():
        _open_parts(parts, _manifest(recommender, [k, keep_seen, allowed, denied]), overwrite)
    wait()
    users = recommender.fitted.seen.user_ids.ids
    resumed, files = 0, dict[int, Path]()
    for number, start in enumerate(range(0, len(users), PART_USERS)):
        if number % count() != rank():
            continue
        some = users.slice(start, PART_USERS).to_list()
        path = _finished_part(parts, number)
        if path is not None:
            resumed += len(some)
        else:
            table = recommender.recommend(
                some, k, keep_seen=keep_seen, candidates=allowed, exclude=denied, strict=True
            )
            path = _write_part(parts, number, table)
        files[number] = path
        progress("recommending", start + len(some), len(users))
    of_all = {number: path for some in joined_rows(files) for number, path in some.items()}
    rows = 0
    if is_first():
        rows = _join([of_all[number] for number in sorted(of_all)], output)
        shutil.rmtree(parts)
    return BulkReport(str(output), len(users), rows, sum(joined_rows(resumed)))


def _manifest(recommender: Recommender, options: list[object]) -> str:
    """What the lists depend on: a part made from anything else must not be taken."""
    digest = hashlib.sha256(recommender.model.graph.interactions.fingerprint.encode())
    digest.update(recommender.dataset.split.known.fingerprint.encode())
    for name, tensor in sorted(recommender.model.fitted_state().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return json.dumps({"model": digest.hexdigest(), "options": options, "users": PART_USERS})


def _open_parts(parts: Path, manifest: str, overwrite: bool) -> None:
    file = parts / MANIFEST
    if file.is_file() and file.read_bytes() == manifest.encode():
        return
    if parts.exists():
        if not (overwrite and file.is_file()):
            raise DataError(
                f"{parts}: holds an interrupted job of another run or with other options; "
                "remove it, or pass overwrite=True (--overwrite)"
            )
        shutil.rmtree(parts)
    parts.mkdir()
    with replacing(file) as temporary:
        temporary.write_text(manifest, encoding="utf-8")


def _write_part(parts: Path, number: int, table: pl.DataFrame) -> Path:
    """A part's name has its digest, by which a damaged one is told when the job goes on."""
    with replacing(parts / f"{number:06}") as temporary:
        table.write_parquet(temporary)
        name = f"{number:06}.{_digest(temporary)}.parquet"
    return (parts / f"{number:06}").rename(parts / name)


def _finished_part(parts: Path, number: int) -> Path | None:
    for path in parts.glob(f"{number:06}.*.parquet"):
        if path.is_file() and path.name.split(".")[1] == _digest(path):
            return path
        remove(path)
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _join(files: list[Path], output: Path) -> int:
    whole = pl.scan_parquet(files)
    with replacing(output) as temporary:
        if output.suffix == ".csv":
            whole.sink_csv(temporary)
        else:
            whole.sink_parquet(temporary)
    return int(whole.select(pl.len()).collect().item())
