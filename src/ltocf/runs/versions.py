"""The versions of a run. An update adds one, so that the old model can be returned to.

The files in the run's directory itself are version 1. Later versions are complete run directories,
versions/2 and so on. When version 1 is no longer kept, only its settings stay.
current.json names the version in use and the previous one; it is replaced in one step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from ltocf.errors import RunError
from ltocf.storage.digests import read_text
from ltocf.storage.files import is_temporary, remove, replacing, writing

MARKER = "config.toml"  # a directory with this file is a run
METRICS = "metrics.json"  # a run with this file has finished training
SEARCH = "search"  # the folder that the search which made the run needs to continue
FIRST, FOLDER, POINTER = 1, "versions", "current.json"
FIRST_FILES = (  # the files of version 1 besides its settings
    "data",
    "weights.safetensors",
    "scorer.safetensors",
    "state.safetensors",
    "history.jsonl",
    "metrics.json",
    "curves.png",
    "auto.json",
    "digests.json",
)


class InUse(NamedTuple):
    current: int
    previous: int | None  # what rollback returns to
    candidate: int | None = None  # made to be tried beside the current one


class Version(NamedTuple):
    version: int
    role: str | None  # current, previous or candidate
    made: float  # seconds since 1970


def refuse_foreign(path: Path) -> None:
    """A RunError if `path` is not a run directory, before anything else is loaded."""
    if not (path / MARKER).is_file():
        raise RunError(f"{path}: not a run directory (no {MARKER}); make one with 'ltocf train'")


def unfinished(path: Path) -> bool:
    """Whether `path` is a run whose training has not finished. Every version that a search saves
    counts as finished."""
    return (path / MARKER).is_file() and not (current_path(path) / METRICS).is_file()


def root_of(path: Path) -> Path:
    """The run that a version belongs to; for the directory of a run, that directory itself."""
    inside = path.parent.name == FOLDER and path.name.isdigit()
    return path.parent.parent if inside else path


def version_path(root: Path, version: int) -> Path:
    return root if version == FIRST else root / FOLDER / str(version)


def in_use(root: Path) -> InUse:
    pointer = root / POINTER
    try:
        found = InUse(**json.loads(read_text(pointer)))
        others = found.previous, found.candidate
        if not isinstance(found.current, int) or not all(isinstance(v, int | None) for v in others):
            raise TypeError
    except FileNotFoundError:
        return InUse(FIRST, None)
    except (OSError, ValueError, TypeError, RecursionError):
        raise RunError(
            f"{pointer}: cannot be read; remove it to return to the first version"
        ) from None
    return found


def current_path(path: Path) -> Path:
    """The directory of the version in use; for the directory of a version, that directory."""
    return version_path(path, in_use(path).current)


def next_version(root: Path) -> int:
    """The number of the next version, above all that exist."""
    folder = root / FOLDER
    taken = (
        [int(path.name) for path in folder.iterdir() if path.name.isdigit()]
        if folder.is_dir()
        else []
    )
    return max([FIRST, in_use(root).current, *taken]) + 1


def use_version(root: Path, version: int) -> None:
    """Use this version from now on. The one in use until now is kept; older ones are removed."""
    now = in_use(root)
    _point(root, InUse(version, now.current, None if now.candidate == version else now.candidate))
    clear_unused(root)


def keep_candidate(root: Path, version: int) -> None:
    """Keep this version as the candidate, instead of an earlier one; it is not put to use."""
    _point(root, in_use(root)._replace(candidate=version))
    clear_unused(root)


def promote(root: Path) -> InUse:
    """Use the candidate from now on; the version in use until now can be returned to."""
    with writing(root, error=RunError):
        now = in_use(root)
        if now.candidate is None or not version_path(root, now.candidate).is_dir():
            raise RunError(
                f"{root}: has no candidate; make one with 'ltocf update {root} --candidate'"
            )
        use_version(root, now.candidate)
        return in_use(root)


def versions(root: Path) -> list[Version]:
    """All versions that are kept, the newest first."""
    roles = {number: role for role, number in in_use(root)._asdict().items() if number is not None}
    found = []
    for number in sorted(roles, reverse=True):
        marker = version_path(root, number) / MARKER
        if marker.is_file():
            found.append(Version(number, roles.get(number), marker.stat().st_mtime))
    return found


def clear_unused(root: Path) -> None:
    """Remove versions that are neither current, previous nor candidate, such as one that a killed
    update wrote but never put to use."""
    kept = {str(version) for version in in_use(root)}
    for path in (root / FOLDER).glob("*"):
        if path.name not in kept and (path.name.isdigit() or is_temporary(path)):
            remove(path)
    if str(FIRST) not in kept:
        for name in FIRST_FILES:
            remove(root / name)


def drop_other_versions(root: Path) -> None:
    """Remove every version but the one in use, since the others still contain people who asked to
    be forgotten."""
    with writing(root, error=RunError):
        _point(root, InUse(in_use(root).current, None))
        clear_unused(root)


def rollback(root: Path) -> InUse:
    """Return to the previous version. A second call returns to the newer one again."""
    with writing(root, error=RunError):  # an update that runs at the same time would undo it
        now = in_use(root)
        if now.previous is None:
            raise RunError(f"{root}: has no earlier version to return to")
        if not version_path(root, now.previous).is_dir():
            raise RunError(f"{root}: version {now.previous} no longer exists")
        _point(root, now._replace(current=now.previous, previous=now.current))
        return in_use(root)


def _point(root: Path, to: InUse) -> None:
    with replacing(root / POINTER, error=RunError) as temporary:
        temporary.write_text(json.dumps(to._asdict()) + "\n", encoding="utf-8")
