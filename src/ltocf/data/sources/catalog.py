"""Data sets by name: the public ones of the papers, the built-in town, and your own directories.

A log where a data set is asked for is prepared with the usual choices, and kept.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from ltocf.data.dataset import Dataset
from ltocf.data.dataset_files import MARKER, read_description
from ltocf.data.ingest.byte_files import log_digest
from ltocf.data.ingest.prepare import prepare
from ltocf.data.ingest.recipe import Recipe
from ltocf.data.pairs.thinning import Unknown
from ltocf.data.sources.download import download
from ltocf.data.sources.published import PUBLISHED
from ltocf.data.sources.text_folder import FILES, is_text_folder, load_text_folder
from ltocf.data.sources.town import make_town
from ltocf.errors import DataError
from ltocf.progress import Progress, silent
from ltocf.storage.cache import cache_root

ORIGIN = "https://raw.githubusercontent.com/gusye1234/LightGCN-PyTorch/master/data"


def load_dataset(
    name_or_path: str | Path, *, unknown: Unknown = "drop", ordered: bool | None = None
) -> Dataset:
    """A catalog name, 'town', a prepared data set, or a folder with train.txt and test.txt.

    For such a folder, `unknown` tells what to do with test pairs that train does not know, and
    `ordered` whether its lines list items in the order of time, which is found out otherwise.
    """
    name = str(name_or_path)
    if name == "town":
        return make_town().dataset
    if name in PUBLISHED:
        directory = find_published(name)
        # Their lines seem to be in the order of time: research/blends.md.
        return load_text_folder(directory, name, unknown="keep", ordered=True)
    path = Path(name_or_path)
    refuse_unknown(name)
    if (path / MARKER).is_file():
        return Dataset.load(path)
    return load_text_folder(path, path.resolve().name, unknown=unknown, ordered=ordered)


def refuse_unknown(name: str) -> None:
    """A DataError where `load_dataset` would find nothing, without reading anything."""
    path = Path(name)
    if name in ("town", *PUBLISHED) or (path / MARKER).is_file() or is_text_folder(path):
        return
    if not path.exists() and (path.suffix or len(path.parts) > 1):
        raise DataError(f"{name}: no such file or folder")
    what = "holds neither" if path.is_dir() else "is no directory with"
    raise DataError(
        f"unknown data set {name!r}: it {what} {MARKER} {'nor' if path.is_dir() else 'or'} "
        f"{' and '.join(FILES)}; choose one of: {', '.join(['town', *PUBLISHED])}, "
        "or make one with 'ltocf prepare'"
    )


def find_published(name: str) -> Path:
    """The directory of a published set, found or downloaded, and checked by its md5 sums.

    Looked for in $LTOCF_DATA and in the cache; $LTOCF_MIRROR replaces its home page.
    """
    for root in _roots():
        directory = root / name
        if is_text_folder(directory):
            _check(directory, name)
            return directory
    directory = cache_root() / name
    base = os.environ.get("LTOCF_MIRROR") or ORIGIN
    for file, md5 in zip(FILES, PUBLISHED[name].md5, strict=True):
        download(f"{base}/{name}/{file}", directory / file, md5=md5)
    return directory


def _roots() -> list[Path]:
    given = os.environ.get("LTOCF_DATA")
    return [*([Path(given)] if given else []), cache_root()]


def _check(directory: Path, name: str) -> None:
    for file, expected in zip(FILES, PUBLISHED[name].md5, strict=True):
        path = directory / file
        if hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() != expected:
            raise DataError(
                f"{path}: not the published {name!r} (its md5 sum differs); "
                "remove it to have it downloaded, or name its directory to use it as it is"
            )


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
    """The origin recorded in the data set at a path; empty if there is none."""
    if not (path / MARKER).is_file():
        return {}
    origin: Mapping[str, Any] = read_description(path)["origin"]
    return origin
