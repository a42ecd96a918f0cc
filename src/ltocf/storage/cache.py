"""Caches: where they are and how large they may grow. Everything in them can be recreated."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import platformdirs

MOST_BYTES = 2_000_000_000  # of cached spectra; beyond that, the least recently used are removed


def cache_root() -> Path:
    """Where downloads and spectra are kept: with the system's caches, such as ~/.cache/ltocf."""
    return platformdirs.user_cache_path("ltocf", appauthor=False)


def spectra_directory() -> Path:
    return cache_root() / "spectra"


def touch(path: Path) -> None:
    """Note that a cached file was used just now."""
    try:
        os.utime(path)
    except OSError:  # another user's cache may be readable but not writable
        return


def shrink(directory: Path, most_bytes: int = MOST_BYTES) -> None:
    """Remove the files that were used longest ago until the others fit. Best effort: another
    process may do the same."""
    kept = 0
    found = [(path, path.stat()) for path in directory.glob("*") if path.is_file()]
    for path, status in sorted(found, key=lambda entry: -entry[1].st_mtime_ns):
        kept += status.st_size
        if kept > most_bytes:
            path.unlink(missing_ok=True)


def contents() -> dict[str, int]:
    """The size of each directory of the cache in bytes, by name."""
    root = cache_root()
    if not root.is_dir():
        return {}
    return {
        entry.name: sum(file.stat().st_size for file in entry.rglob("*") if file.is_file())
        for entry in sorted(root.iterdir())
        if entry.is_dir()
    }


def clear() -> int:
    """Remove everything that is cached; returns how many bytes were freed."""
    total = sum(contents().values())
    for name in contents():
        shutil.rmtree(cache_root() / name)
    return total
