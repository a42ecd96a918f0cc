"""A log where a data set is asked for: it is prepared with the usual choices, and kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from ltocf.data.dataset_files import MARKER, read_description
from ltocf.data.ingest.byte_files import log_digest
from ltocf.data.ingest.prepare import prepare
from ltocf.data.ingest.recipe import Recipe
from ltocf.data.sources.published import PUBLISHED
from ltocf.data.sources.text_folder import is_text_folder
from ltocf.progress import Progress, silent


def is_raw_log(name_or_path: str | Path) -> bool:
    """Whether this is a file, or a folder, that is no data set yet."""
    path = Path(name_or_path)
    named = str(name_or_path) in ("town", *PUBLISHED)
    return path.exists() and not (named or (path / MARKER).is_file() or is_text_folder(path))


def dataset_beside(
    log: str | Path,
    folder: Path,
    progress: Progress = silent,
    given: Mapping[str, Any] | None = None,
) -> tuple[Path, list[str]]:
    """Where the log's data set is, NAME-data in `folder`, and what to say of it.

    One that was made of this log, as it is now and by the same recipe, of which fields may be
    given, is taken as it is, and one that was made of it otherwise is replaced. That of another log
    of the same name is left alone: this one's is then NAME-data-2, and so on.
    """
    recipe, source = Recipe(**given or {}), str(Path(log).resolve())
    free_or_ours = (
        path
        for path in _places(Path(log), folder)
        if not path.exists() or _origin(path).get("path") == source
    )
    known = _origin(path := next(free_or_ours))
    wanted = {"logs": [log_digest(log)], "options": asdict(recipe)}
    if wanted == {name: known.get(name) for name in wanted}:
        return path, [f"{log}: prepared before, in {path}; taken as it is"]
    report = prepare(log, path, recipe, overwrite=bool(known), progress=progress)
    how = "the usual choices ('ltocf prepare' has others)"
    how = "the choices given" if given else how
    return path, [f"{log} is a log: prepared with {how}", *report.lines()]


def _places(log: Path, folder: Path) -> Iterator[Path]:
    yield folder / f"{log.stem}-data"
    for number in count(2):
        yield folder / f"{log.stem}-data-{number}"


def _origin(path: Path) -> Mapping[str, Any]:
    """Where the data set at a path came from; empty if there is none."""
    if not (path / MARKER).is_file():
        return {}
    origin: Mapping[str, Any] = read_description(path)["origin"]
    return origin
