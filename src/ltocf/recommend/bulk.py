"""Write the lists of all users, or the neighbours of all items, to one file. The work is done in
parts, so that an interrupted job continues where it stopped."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ltocf.data.interactions import Id
from ltocf.distributed import count, is_first, joined_rows, rank, wait
from ltocf.errors import DataError
from ltocf.machine.memory import require_memory
from ltocf.progress import Progress, silent
from ltocf.ranking.top_k import length_of_list, tile_bytes
from ltocf.recommend.ids import TABLES, known_rows
from ltocf.recommend.lists import ListOptions, blocked_items
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.rules import Rules
from ltocf.recommend.tables import flat, items_table
from ltocf.scorers.scorer import Parts
from ltocf.storage.files import refuse_file, remove, replacing, writing

if TYPE_CHECKING:
    from ltocf.recommend.approximate import ApproximateLists

PART_USERS = 8192
TILES = 4  # memory to reserve: scores, filtered scores, their masked copy, and one to spare
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class BulkReport:
    output: str
    users: int
    rows: int
    resumed: int  # users whose lists an interrupted job had already written
    recall: float | None = None  # of approximate lists, the share of the exact ones' items found
    recall_users: int = 0  # of how many users it was measured


def recommend_all(
    recommender: Recommender,
    output: str | Path,
    k: int = 10,
    *,
    keep_seen: bool = False,
    candidates: Iterable[Id] | None = None,
    exclude: Iterable[Id] = (),
    rules: Rules | None = None,
    approximate: bool = False,
    overwrite: bool = False,
    progress: Progress = silent,
) -> BulkReport:
    """Write `recommend` of every user to a Parquet or CSV file, in the order of their rows.

    Memory does not grow with the users: lists go to OUTPUT.parts first, and a job that is started
    again after an interruption makes only the missing ones. `approximate` looks for candidates by
    rounded scores and ranks those exactly, which is faster where there are very many items; the
    report's `recall` says how much of the exact lists some users got.
    """
    choice: dict[str, Any] = {
        "keep_seen": keep_seen,
        "candidates": None if candidates is None else list(candidates),
        "exclude": list(exclude),
        "rules": rules or Rules(),
    }
    ids = recommender.fitted.seen.user_ids.ids
    if not approximate:
        job = _Job(
            recommender,
            Path(output),
            ids,
            lambda users, k: recommender.recommend(users, k, strict=True, **choice),
            str(choice),
        )
        return job.write(k, overwrite, progress)
    lists = _approximate(recommender, k, choice)
    job = _Job(
        recommender,
        Path(output),
        ids,
        lambda users, k: _table(recommender, users, lists),
        f"approximate {choice}",
    )
    report = job.write(k, overwrite, progress)
    measured = lists.recall()
    return replace(report, recall=measured.recall, recall_users=measured.users)


def _approximate(recommender: Recommender, k: int, choice: dict[str, Any]) -> ApproximateLists:
    from ltocf.recommend.approximate import ApproximateLists  # compiles: for those who ask for it

    fitted = recommender.fitted
    blocked = blocked_items(fitted.seen.item_ids, choice["candidates"], choice["exclude"])
    k = length_of_list(k, fitted.seen.n_items)
    options = ListOptions(k, choice["keep_seen"], blocked, choice["rules"])
    return ApproximateLists.of(fitted, options)


def _table(recommender: Recommender, users: list[Id], lists: ApproximateLists) -> pl.DataFrame:
    ids = recommender.fitted.seen.user_ids
    rows = known_rows(ids, users, "user", strict=True)
    owners = ids.column(rows, "user")
    return items_table(recommender.fitted, owners, lists(rows), lists.options.rules)


def similar_all(
    recommender: Recommender,
    output: str | Path,
    k: int = 10,
    *,
    overwrite: bool = False,
    progress: Progress = silent,
) -> BulkReport:
    """The same for `similar_items` of every item; `users` of the report then counts items."""
    items = recommender.fitted.seen.item_ids.ids
    job = _Job(recommender, Path(output), items, recommender.similar_items, "similar items")
    return job.write(k, overwrite, progress)


@dataclass(frozen=True, eq=False)
class _Job:
    """A table with the answer for each of these ids; `options` say what was asked."""

    recommender: Recommender
    output: Path
    ids: pl.Series
    answer: Callable[[list[Id], int], pl.DataFrame]
    options: str

    def write(self, k: int, overwrite: bool, progress: Progress) -> BulkReport:
        refuse_file(self.output, overwrite=overwrite, kinds=TABLES)
        n_items = self.recommender.fitted.seen.n_items
        k = length_of_list(k, n_items)
        require_memory(
            TILES * tile_bytes(n_items),
            f"recommending among {n_items:,} items",
            "use a machine with more",
        )
        with writing(self.output) if is_first() else nullcontext():
            return self._write(k, overwrite, progress)

    def _write(self, k: int, overwrite: bool, progress: Progress) -> BulkReport:
        parts = self.output.with_name(f"{self.output.name}.parts")
        if is_first():
            _open_parts(parts, _manifest(self.recommender, [k, self.options]), overwrite)
        wait()
        resumed, files = 0, dict[int, Path]()
        for number, start in enumerate(range(0, len(self.ids), PART_USERS)):
            if number % count() != rank():
                continue
            some = self.ids.slice(start, PART_USERS).to_list()
            path = _finished_part(parts, number)
            if path is not None:
                resumed += len(some)
            else:
                path = _write_part(parts, number, self.answer(some, k))
            files[number] = path
            progress("recommending", start + len(some), len(self.ids))
        of_all = {number: path for some in joined_rows(files) for number, path in some.items()}
        rows = 0
        if is_first():
            rows = _join([of_all[number] for number in sorted(of_all)], self.output)
            shutil.rmtree(parts)
        return BulkReport(str(self.output), len(self.ids), rows, sum(joined_rows(resumed)))


def _manifest(recommender: Recommender, options: list[object]) -> str:
    """A digest of everything that the lists depend on, since parts made from anything else must not
    be reused."""
    dataset = recommender.dataset
    # What else the lists show of an item; and of the data, what the model learned from.
    about = hashlib.sha256(dataset.catalogue.table.write_ndjson().encode())
    about.update(recommender.fitted.train.fingerprint.encode())
    return json.dumps(
        {
            "data": dataset.digest,
            "items": about.hexdigest(),
            "model": _model_digest(recommender),
            "options": options,
            "users": PART_USERS,
        }
    )


def _model_digest(recommender: Recommender) -> str:
    """A digest of all that the scores come from, a blend's weights and the recency included."""
    digest = hashlib.sha256()

    def add(parts: Parts) -> None:
        digest.update(json.dumps([parts.kind, len(parts.members), parts.values]).encode())
        for name, array in sorted(parts.arrays.items()):
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        for member in parts.members:
            add(member)

    parts = recommender.scorer.parts()
    if parts is None:  # such a scorer cannot be stored; only its model can make it
        tensors = recommender.model.fitted_state().items()
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors}
        parts = Parts(recommender.config.model_name, arrays)
    add(parts)
    return digest.hexdigest()


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
    """A part's name contains its digest, so that a damaged part is noticed when the job resumes."""
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
    whole = pl.scan_parquet(files, glob=False)
    with replacing(output) as temporary:
        if output.suffix == ".csv":
            flat(whole).sink_csv(temporary)
        else:
            whole.sink_parquet(temporary)
    return int(whole.select(pl.len()).collect().item())
