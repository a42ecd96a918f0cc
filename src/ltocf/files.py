"""Writing so that a reader finds the whole or nothing: under a temporary name, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ltocf.errors import DataError, LtocfError


@contextmanager
def new_directory(
    path: str | Path,
    *,
    marker: str,
    overwrite: bool = False,
    error: type[LtocfError] = DataError,
) -> Iterator[Path]:
    """A temporary directory beside `path` that becomes `path` if the body succeeds, else vanishes.

    `path` may be absent or empty. With `overwrite` it may also hold an older one of ours, known by
    the file `marker`; anything else is never removed. Failures to write are raised as `error`.
    """
    path = Path(path)
    try:
        _refuse_occupied(path, marker, overwrite, error)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as failure:
        raise error(f"{path}: cannot be written ({failure.strerror or failure})") from None
    try:
        temporary.chmod(0o777 & ~_umask())
        yield temporary
        _replace(temporary, path)
    except OSError as failure:
        raise error(f"{path}: cannot be written ({failure.strerror or failure})") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse_occupied(path: Path, marker: str, overwrite: bool, error: type[LtocfError]) -> None:
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / marker).is_file():
        raise error(f"{path}: is in the way and holds no {marker}; choose another output")
    if not overwrite:
        raise error(f"{path}: already exists; choose another output or pass --overwrite")


def _replace(temporary: Path, path: Path) -> None:
    if not path.exists():
        temporary.rename(path)
        return
    # A directory cannot be renamed over a full one: step aside, step in, clear away.
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    path.rename(aside / "old")
    temporary.rename(path)
    shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def replacing(path: Path, *, error: type[LtocfError] = DataError) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it becomes `path` if the body succeeds."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as failure:
        raise error(f"{path}: cannot be written ({failure.strerror or failure})") from None
    finally:
        temporary.unlink(missing_ok=True)
