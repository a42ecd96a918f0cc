"""A log where a data set is asked for: it is prepared with the usual choices, and kept."""

from __future__ import annotations

from pathlib import Path

from ltocf.data.dataset_files import MARKER, read_description
from ltocf.data.ingest.prepare import prepare
from ltocf.data.sources.catalog import PUBLISHED
from ltocf.data.sources.text_folder import is_text_folder
from ltocf.progress import Progress, silent


def is_raw_log(name_or_path: str | Path) -> bool:
    """Whether this is a file, or a folder, that is no data set yet."""
    path = Path(name_or_path)
    named = str(name_or_path) in ("town", *PUBLISHED)
    return path.exists() and not (named or (path / MARKER).is_file() or is_text_folder(path))


def dataset_beside(
    log: str | Path, folder: Path, progress: Progress = silent
) -> tuple[Path, list[str]]:
    """Where the log's data set is, NAME-data in `folder`, and what to say of it. One that was made
    of this log, and since it last changed, is taken as it is."""
    path = folder / f"{Path(log).stem}-data"
    if _is_of(path, Path(log)):
        return path, [f"{log}: prepared before, in {path}; taken as it is"]
    report = prepare(log, path, overwrite=_is_of(path, Path(log), whenever=True), progress=progress)
    lines = [f"{log} is a log: prepared with the usual choices ('ltocf prepare' has others)"]
    return path, lines + report.lines()


def _is_of(path: Path, log: Path, *, whenever: bool = False) -> bool:
    if not (path / MARKER).is_file():
        return False
    same = str(read_description(path)["origin"].get("source")).startswith(str(log))
    return same and (whenever or _changed(path / MARKER) >= _changed(log))


def _changed(path: Path) -> float:
    """When a file was last written, or the latest one in a folder."""
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return max(file.stat().st_mtime for file in files)
