"""A run that is updated keeps the model it had: versions in the run's directory, one in use.

The run's own files are version 1; later ones are whole run directories, versions/2 and so on.
current.json, replaced in one move, names the one in use and the one before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from ltocf.digests import read_text
from ltocf.errors import RunError
from ltocf.files import is_temporary, remove, replacing, writing

MARKER = "config.toml"  # of a run directory
FIRST, FOLDER, POINTER = 1, "versions", "current.json"


class InUse(NamedTuple):
    current: int
    previous: int | None  # what rollback returns to


def refuse_foreign(path: Path) -> None:
    """A RunError where there is no run, before anything else is loaded."""
    if not (path / MARKER).is_file():
        raise RunError(f"{path}: not a run of ours (no {MARKER}); make one with 'ltocf train'")


def root_of(path: Path) -> Path:
    """The run that a version belongs to; a run that is no version is its own."""
    inside = path.parent.name == FOLDER and path.name.isdigit()
    return path.parent.parent if inside else path


def version_path(root: Path, version: int) -> Path:
    return root if version == FIRST else root / FOLDER / str(version)


def in_use(root: Path) -> InUse:
    pointer = root / POINTER
    try:
        found = InUse(**json.loads(read_text(pointer)))
        if not isinstance(found.current, int) or not isinstance(found.previous, int | None):
            raise TypeError
    except FileNotFoundError:
        return InUse(FIRST, None)
    except (OSError, ValueError, TypeError, RecursionError):
        raise RunError(
            f"{pointer}: cannot be read; remove it to return to the first version"
        ) from None
    return found


def current_path(path: Path) -> Path:
    """The directory of the version in use of a run; a version's own is itself."""
    return version_path(path, in_use(path).current)


def next_version(root: Path) -> int:
    """A number that no version has had while its directory is there."""
    folder = root / FOLDER
    taken = (
        [int(path.name) for path in folder.iterdir() if path.name.isdigit()]
        if folder.is_dir()
        else []
    )
    return max([FIRST, in_use(root).current, *taken]) + 1


def use_version(root: Path, version: int) -> None:
    """From now on this version is the run; the one in use until now is kept, older ones are not."""
    _point(root, InUse(version, in_use(root).current))
    clear_unused(root)


def clear_unused(root: Path) -> None:
    """Remove versions that are neither in use nor to be returned to, such as that of an update that
    was killed before it was used."""
    kept = {str(version) for version in in_use(root)}
    for path in (root / FOLDER).glob("*"):
        if path.name not in kept and (path.name.isdigit() or is_temporary(path)):
            remove(path)


def rollback(root: Path) -> InUse:
    """Return to the version before; a second time, to the one that was left."""
    with writing(root, error=RunError):  # an update that runs would undo it
        now = in_use(root)
        if now.previous is None:
            raise RunError(f"{root}: has no earlier version to return to")
        if not version_path(root, now.previous).is_dir():
            raise RunError(f"{root}: version {now.previous} is no longer there")
        _point(root, InUse(now.previous, now.current))
        return in_use(root)


def _point(root: Path, to: InUse) -> None:
    with replacing(root / POINTER, error=RunError) as temporary:
        temporary.write_text(json.dumps(to._asdict()) + "\n", encoding="utf-8")
