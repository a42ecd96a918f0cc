"""Data sets by name: the public ones of the papers, the built-in town, and your own directories."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ltocf.data.dataset import Dataset
from ltocf.data.dataset_files import MARKER
from ltocf.data.pairs.thinning import Unknown
from ltocf.data.sources.download import download
from ltocf.data.sources.published import PUBLISHED
from ltocf.data.sources.text_folder import FILES, is_text_folder, load_text_folder
from ltocf.data.sources.town import make_town
from ltocf.errors import DataError
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
        # Their lines seem to list a user's items in the order of time: research/blends.md.
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
