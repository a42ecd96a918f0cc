"""Keys of clients. Each key has a name and scopes; only its digest is stored.

A key is 32 random bytes, so that one plain SHA-256 of it is as hard to invert as a slow hash is.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ltocf.errors import ConfigError
from ltocf.storage.files import replacing, writing

SCOPES = ("read", "write", "admin")  # each is separate: a key that may write need not read
PREFIX = "ltocf_"  # by which a leaked key is recognised
LONGEST_NAME = 64
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Key:
    name: str
    scopes: tuple[str, ...]
    digest: str
    made: int  # seconds since 1970
    ends: int | None = None  # when it stops working, such as after it was rotated

    def works(self, now: float) -> bool:
        return self.ends is None or now < self.ends


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def read_keys(path: Path) -> list[Key]:
    """None where there is no file."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        found = [Key(**row | {"scopes": tuple(row["scopes"])}) for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError):
        raise ConfigError(f"{path}: cannot be read as a file of keys") from None
    return found


def add_key(path: Path, name: str, scopes: Sequence[str]) -> str:
    """The new client's key. It is not stored, so it can be shown only now."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ConfigError(f"a client's name has 1 to {LONGEST_NAME} printable characters: {name!r}")
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise ConfigError(
            f"unknown scope {unknown[0]!r}; choose from: {', '.join(SCOPES)}"
            if unknown
            else f"a key needs a scope: {', '.join(SCOPES)}"
        )
    with writing(path, error=ConfigError):  # else who reads now would lose what is added meanwhile
        keys = read_keys(path)
        if any(key.name == name for key in keys):
            raise ConfigError(f"{path}: already has a key named {name!r}; rotate or remove it")
        secret, key = _make(name, tuple(scopes))
        _write(path, [*keys, key])
    return secret


def rotate_key(path: Path, name: str, grace_seconds: float) -> str:
    """A new key of the same name and scopes; the old one works a while longer."""
    now = int(time.time())
    with writing(path, error=ConfigError):
        keys = read_keys(path)
        mine = [key for key in keys if key.name == name]
        if not mine:
            raise ConfigError(f"{path}: there is no key named {name!r}")
        secret, fresh = _make(name, mine[-1].scopes)
        ends = now + int(grace_seconds)
        kept = [
            Key(**asdict(key) | {"ends": min(key.ends or ends, ends)}) if key.name == name else key
            for key in keys
        ]
        _write(path, [key for key in kept if key.works(now)] + [fresh])
    return secret


def remove_key(path: Path, name: str) -> None:
    with writing(path, error=ConfigError):
        keys = read_keys(path)
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            raise ConfigError(f"{path}: there is no key named {name!r}")
        _write(path, left)


def _make(name: str, scopes: tuple[str, ...]) -> tuple[str, Key]:
    secret = PREFIX + secrets.token_urlsafe(32)
    return secret, Key(name, scopes, digest_of(secret), int(time.time()))


def _write(path: Path, keys: Sequence[Key]) -> None:
    with replacing(path, error=ConfigError) as temporary:
        rows = [asdict(key) | {"scopes": list(key.scopes)} for key in keys]
        temporary.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    path.chmod(0o600)  # digests reveal no key, but names and scopes are private too


class KeyFile:
    """The keys of a file, read again when it changes, so that rotation needs no restart."""

    def __init__(self, path: Path) -> None:
        if not path.exists():  # a slip of the pen would lock everybody out
            raise ConfigError(
                f"{path}: does not exist; make a key with 'ltocf keys {path} add NAME --scope read'"
            )
        self.path = path
        self._lock = threading.Lock()
        self._looked, self._stamp = -LOOK_SECONDS, self._changed()
        self._keys = {key.digest: key for key in read_keys(path)}

    def find(self, secret: str) -> Key | None:
        self._follow()
        key = self._keys.get(digest_of(secret))
        return key if key is not None and key.works(time.time()) else None

    def _follow(self) -> None:
        with self._lock:
            if time.monotonic() - self._looked < LOOK_SECONDS:
                return
            self._looked = time.monotonic()
            if (stamp := self._changed()) != self._stamp:
                try:
                    self._keys = {key.digest: key for key in read_keys(self.path)}
                    self._stamp = stamp
                # A file that is just being written: the previous keys stay valid.
                except ConfigError:
                    return

    def _changed(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
