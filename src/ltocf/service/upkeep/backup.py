"""Saves a run and its events as one file, and restores them; removes events that were learned."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ltocf.errors import DataError, RunError
from ltocf.runs.run import EVENTS, Run
from ltocf.runs.versions import refuse_foreign, version_path, versions
from ltocf.service.served_model import LEARNED
from ltocf.service.store.dump import dump_store, load_store, prune
from ltocf.service.store.events import EventStore
from ltocf.storage.files import is_temporary, replacing, writing

RUN, STORE, MANIFEST = "run", "store.jsonl", "manifest.json"
FORMAT = 1


class BackupCounts(NamedTuple):
    files: int
    rows: int  # rows of the store


def back_up(root: Path, store: EventStore, path: Path) -> BackupCounts:
    """Write the run, all its versions, and the store into one file, whole or not at all.

    While the run is copied it cannot be updated. The store is read after it, at one moment, so that
    it contains all that the run has not learned. Events can be committed all the while.
    """
    refuse_foreign(root)
    digests: dict[str, str] = {}
    with (
        replacing(path, error=DataError) as temporary,
        tempfile.TemporaryDirectory() as folder,
        tarfile.open(temporary, "w:gz", compresslevel=1) as archive,
    ):
        with writing(root, error=RunError):
            for file in _files(root):
                name = f"{RUN}/{file.relative_to(root).as_posix()}"
                digests[name] = _digest(file)
                archive.add(file, name, recursive=False)
        dumped = Path(folder) / STORE
        with dumped.open("w", encoding="utf-8") as lines:
            rows = dump_store(store, lines)
        digests[STORE] = _digest(dumped)
        archive.add(dumped, STORE)
        manifest = Path(folder) / MANIFEST
        manifest.write_text(json.dumps({"format": FORMAT, "files": digests}), encoding="utf-8")
        archive.add(manifest, MANIFEST)
    os.chmod(path, 0o600)  # it contains ids of people
    return BackupCounts(len(digests) - 1, rows)


def restore(path: Path, root: Path, where: str | None) -> BackupCounts:
    """Restore the run at `root`, which must not exist, and its events in `where`, which must be
    empty and is by default the run's own file."""
    if root.exists():
        raise RunError(f"{root}: already exists; restore to another place, or move it away")
    with _unpacked(path, root) as (folder, manifest):
        for name, digest in manifest.items():
            if not (folder / name).is_file() or _digest(folder / name) != digest:
                raise DataError(f"{path}: is damaged: {name} differs from what was saved")
        Run.open(folder / RUN)
        local = str(folder / RUN / EVENTS)
        store = EventStore.open(where or local)
        try:
            with (folder / STORE).open(encoding="utf-8") as lines:
                rows = load_store(store, lines)
        finally:
            store.close()
        os.replace(folder / RUN, root)
    return BackupCounts(len(manifest) - 1, rows)


def prune_learned(root: Path, store: EventStore) -> int:
    """Remove events that every kept version of the run has learned from. Returns how many."""
    refuse_foreign(root)
    learned = []
    with writing(root, error=RunError):
        for one in versions(root):
            origin = Run.at(version_path(root, one.version)).dataset.origin
            learned.append(int(origin.get(LEARNED, {}).get(store.id, 0)))
        return prune(store, min(learned, default=0))


def _files(root: Path) -> Iterator[Path]:
    for file in sorted(root.rglob("*")):
        inside = file.relative_to(root).parts
        ours = not any(is_temporary(Path(part)) for part in inside)
        if file.is_file() and ours and not inside[0].startswith(EVENTS):
            yield file


@contextmanager
def _unpacked(path: Path, root: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """The backup's files, unpacked beside their destination, and their digests."""
    root.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".restoring-", dir=root.parent))
    try:
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such backup") from None
        except (OSError, EOFError, ValueError, tarfile.TarError) as failure:
            reason = str(failure).partition(":\n")[0]  # then each format that it might have been
            raise DataError(f"{path}: cannot be read as a backup: {reason}") from None
        if manifest.get("format") != FORMAT:
            raise DataError(f"{path}: the backup has another format; this ltocf reads {FORMAT}")
        yield folder, manifest["files"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
