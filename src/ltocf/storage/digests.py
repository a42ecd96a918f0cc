"""digests.json: the size and sha256 of each file of a directory, so that damage is noticed.

A subdirectory that has a digests.json of its own is listed by that file alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

FILE = "digests.json"
LARGEST_TEXT = 1 << 26  # bytes; our JSON and TOML files are far smaller, so a larger one is damaged

ATTEMPTS = 5  # to read a directory that other processes keep replacing

Read = TypeVar("Read")
Entry = dict[str, Any] | None  # size and sha256; None: the file does not exist


class Digests:
    """The digests that each file may have: one, or several while the file is being replaced.

    A replacement is announced before it happens, so that after a crash the old or the new file is
    there, and either is allowed. A directory without a digests.json is not checked.
    """

    def __init__(self, directory: Path, allowed: dict[str, list[Entry]]) -> None:
        self.directory, self._allowed = directory, allowed

    @classmethod
    def of(cls, directory: Path) -> Digests:
        """The digests of the files as they are now."""
        return cls(directory, {name: [entry_of(directory / name)] for name in _names(directory)})

    @classmethod
    def read(cls, directory: Path) -> Digests:
        """Read digests.json. Raises ValueError if it has another form, OSError if unreadable."""
        if not os.path.lexists(directory / FILE):
            return cls(directory, {})
        allowed = json.loads(read_text(directory / FILE))
        if not isinstance(allowed, dict) or not all(map(_is_list_of_entries, allowed.values())):
            raise ValueError("it does not list files with their sizes and digests")
        return cls(directory, allowed)

    def to_json(self) -> str:
        return json.dumps(self._allowed, indent=1) + "\n"

    def allow(self, name: str, *entries: Entry) -> None:
        """Let the file be any of `entries` from now on."""
        self._allowed[name] = list(entries)

    def allowed(self, name: str) -> list[Entry]:
        return self._allowed.get(name, [None])

    def names(self) -> list[str]:
        """The listed files of the directory itself, without those of subdirectories."""
        return [name for name in self._allowed if Path(name).name == name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digests) and self._allowed == other._allowed

    __hash__ = None  # type: ignore[assignment]

    def same_as(self, other: Digests, *names: str) -> bool:
        return all(self._allowed.get(name) == other._allowed.get(name) for name in names)

    def problem(self, name: str) -> str | None:
        """What is wrong with a file, or None. It takes as long as reading the file."""
        if (allowed := self._allowed.get(name)) is None:
            return None
        try:
            found = entry_of(self.directory / name, {e["size"] for e in allowed if e})
        except FileNotFoundError:
            found = None
        except OSError as failure:
            return f"cannot be read ({failure.strerror or failure})"
        if found in allowed:
            return None
        return "is missing" if found is None else f"is not the file that {FILE} lists"


def read_at_rest(
    read: Callable[[Digests], Read],
    digests: Callable[[], Digests],
    same: Callable[[Digests, Digests], bool],
    error: type[Exception],
) -> Read:
    """The result of read(digests) for a directory; it is read again if it was replaced meanwhile.
    An error that such a replacement caused is not raised."""
    for _ in range(ATTEMPTS):
        before, problem = digests(), None
        try:
            found = read(before)
        except error as failure:
            problem = failure
        if same(before, digests()):
            break
    if problem is not None:
        raise problem
    return found


def entry_of(path: Path, sizes: set[int] | None = None) -> Entry:
    """Size and digest of a plain file. If its size is none of the `sizes`, the digest is left out:
    the file is wrong in any case, and it may be huge."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is not a plain file")
    if sizes is not None and about.st_size not in sizes:
        return {"size": about.st_size}
    with path.open("rb") as file:
        return {
            "size": about.st_size,
            "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
        }


def read_text(path: Path) -> str:
    """The text of a plain file of reasonable size; anything else is an OSError or ValueError."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is not a plain file")
    if about.st_size > LARGEST_TEXT:
        raise ValueError(f"it has {about.st_size:,} bytes, too many for such a file")
    return path.read_text(encoding="utf-8")


def _names(directory: Path) -> Iterator[str]:
    for path in sorted(directory.iterdir()):
        if path.is_dir():
            listed = [FILE] if (path / FILE).is_file() else _names(path)
            yield from (f"{path.name}/{name}" for name in listed)
        elif path.name != FILE:
            yield path.name


def _is_list_of_entries(value: object) -> bool:
    return isinstance(value, list) and all(
        entry is None or (isinstance(entry, dict) and isinstance(entry.get("size"), int))
        for entry in value
    )
