"""Atomic and durable writing: readers find a complete file or none, and a power cut undoes nothing.

A file is written under a temporary name, synced to disk (fsync) and then renamed; the rename is
synced too. A writer holds a lock, so a temporary file that exists when the lock is taken was left
by a process that died, and is removed.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ltocf.errors import ConfigError, DataError, LtocfError
from ltocf.storage.digests import FILE as DIGESTS
from ltocf.storage.digests import Digests
from ltocf.storage.locks import SUFFIX as LOCK
from ltocf.storage.locks import Busy, exclusive, is_held

TEMPORARY, ASIDE = ".ltocf-tmp", ".ltocf-old"


@contextmanager
def new_directory(
    path: str | Path,
    *,
    marker: str,
    overwrite: bool = False,
    error: type[LtocfError] = DataError,
) -> Iterator[Path]:
    """A temporary directory beside `path`. It becomes `path` if the body succeeds, and is removed
    otherwise.

    `path` may be absent or empty. With `overwrite` it may also be an older directory of ours, which
    has a file named `marker`; anything else is never removed. Failures to write are raised as
    `error`. The directory gets a digests.json of its files.
    """
    target = real(path)
    with writing(path, error=error):
        refuse_occupied(path, marker=marker, overwrite=overwrite, error=error)
        temporary = _temporary(target)
        try:
            temporary.mkdir()
            yield temporary
            (temporary / DIGESTS).write_text(Digests.of(temporary).to_json(), encoding="utf-8")
            _sync_tree(temporary)
            _replace_directory(temporary, target)
            _sync(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def replacing(path: Path, *, error: type[LtocfError] = DataError) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it becomes `path` if the body succeeds."""
    target = real(path)
    with writing(path, error=error):
        temporary = _temporary(target)
        try:
            temporary.touch(exist_ok=False)
            mode = temporary.stat().st_mode  # as the umask says; some libraries set another mode
            yield temporary
            temporary.chmod(mode)
            _sync(temporary)
            os.replace(temporary, target)
            _sync(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: str | Path, *, error: type[LtocfError] = DataError) -> Iterator[None]:
    """Be the only process that writes `path`, or a file in it; failures are raised as `error`."""
    target = real(path)
    try:
        if is_held(target.parent):
            yield
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(target) as taken:
            if taken:
                _clear_leftovers(target)
            yield
    except Busy as owner:
        raise error(
            f"{path}: is being written by {owner}; wait until that has finished, or choose another "
            "output"
        ) from None
    except Exception as failure:
        if (reason := os_reason(failure)) is None:
            raise
        raise error(f"{path}: cannot be written ({reason})") from None


def remove(path: Path) -> None:
    """Remove a file, or a directory with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def is_temporary(path: Path) -> bool:
    """Whether the file is one that only a running writer needs: a temporary or a lock file."""
    return path.name.startswith(".") and path.name.endswith((TEMPORARY, ASIDE, LOCK))


def real(path: str | Path) -> Path:
    """The absolute path without symbolic links: a link's target is replaced, not the link."""
    return Path(os.path.realpath(path))


def os_reason(failure: Exception) -> str | None:
    """The operating system's reason, if the system is what failed, else None. Libraries written in
    Rust wrap it in their own errors."""
    if wrapped := re.search(r"\(os error (\d+)\)", str(failure)):
        return os.strerror(int(wrapped[1]))
    if isinstance(failure, OSError):
        return failure.strerror or str(failure)
    # polars says no more than this if the disk is full when it writes the end of a Parquet file.
    incomplete = "transport error" in str(failure)
    return "the write was incomplete; is the disk full?" if incomplete else None


def refuse_occupied(
    path: str | Path, *, marker: str, overwrite: bool, error: type[LtocfError] = DataError
) -> None:
    """Raise the error that `new_directory` would, but before the work that fills the directory."""
    target = real(path)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / marker).is_file():
        raise error(
            f"{path}: already exists and was not written by ltocf (it has no {marker}); "
            "choose another output"
        )
    if not overwrite:
        raise error(
            f"{path}: already exists; choose another output, or pass overwrite=True (--overwrite)"
        )


def refuse_file(path: Path, *, overwrite: bool, kinds: Sequence[str] = ()) -> None:
    """Refuse a file that exists, unless `overwrite`, and a name that ends in none of the `kinds`.
    It is called before the work that fills the file."""
    if kinds and path.suffix not in kinds:
        raise ConfigError(f"unknown kind of file {path.name!r}; give one of: {', '.join(kinds)}")
    if path.exists() and not overwrite:
        raise DataError(
            f"{path}: already exists; choose another output, or pass overwrite=True (--overwrite)"
        )


def _temporary(target: Path, suffix: str = TEMPORARY) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}{suffix}")


def _clear_leftovers(target: Path) -> None:
    """Remove what dead processes left, and put back a directory that one of them moved aside."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}({TEMPORARY}|{ASIDE})")
    inside = re.compile(rf"\..*\.[0-9a-f]{{8}}{TEMPORARY}")
    leftovers = [file for file in target.parent.iterdir() if ours.fullmatch(file.name)]
    if target.is_dir():
        leftovers += [file for file in target.iterdir() if inside.fullmatch(file.name)]
    for file in leftovers:
        if file.suffix == ASIDE and not target.exists():
            file.rename(target)
        else:
            remove(file)


def _replace_directory(temporary: Path, target: Path) -> None:
    if not target.exists():
        temporary.rename(target)
    elif not _exchange(temporary, target):
        # A directory cannot be renamed over one that is not empty, so the old one is moved aside
        # first. After a crash in between, readers find nothing until the next writer puts it back.
        aside = _temporary(target, ASIDE)
        target.rename(aside)
        temporary.rename(target)
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step if the system can, which Linux does. Return whether it did."""
    if sys.platform != "linux":
        return False
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    here, both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return swap is not None and swap(here, os.fsencode(one), here, os.fsencode(other), both) == 0


def _sync_tree(directory: Path) -> None:
    for folder, _, names in os.walk(directory):
        for name in names:
            _sync(Path(folder) / name)
        _sync(Path(folder))


def _sync(path: Path) -> None:
    """Make a file's contents, or the names in a directory, survive a power cut."""
    if sys.platform == "win32" and path.is_dir():
        return  # Windows has no such handle; NTFS journals names
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some network shares cannot sync a directory
            raise
    finally:
        os.close(handle)
