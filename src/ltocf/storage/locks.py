"""One writer at a time: an operating-system lock on a file beside what is written.

The system releases the lock when its holder ends, even if that is killed.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SUFFIX = ".ltocf-lock"
# Errors of file systems without locks, such as some network shares. There the user must see to it
# that only one process writes.
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}

_held: dict[Path, int] = {}  # the locks of this process, and the thread that holds each
_guard = threading.Lock()


class Busy(Exception):
    """Somebody else holds the lock; the message says who."""


def is_held(path: Path) -> bool:
    """Whether this process holds the lock of `path`."""
    return path in _held


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Hold the lock of `path`, absolute and real, or raise Busy at once.

    True if the lock was taken, False if this thread has it already.
    """
    me = threading.get_ident()
    with _guard:
        again = _held.get(path) == me
        if path in _held and not again:
            raise Busy("another thread of this process")
        if not again:
            handle = _acquire(path.with_name(f".{path.name}{SUFFIX}"))
            _held[path] = me
    if again:
        yield False
        return
    try:
        yield True
    finally:
        with _guard:
            del _held[path]
            # Removed while it is still held, so that nobody can lock a file that has no name.
            with suppress(OSError):
                path.with_name(f".{path.name}{SUFFIX}").unlink()
            os.close(handle)


def _acquire(file: Path) -> int:
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _try_lock(handle):
                raise Busy(_owner(handle))
            # Its last holder may have removed the file after we opened it and before we locked it.
            if _is(handle, file):
                os.ftruncate(handle, 0)
                os.write(handle, f"{os.getpid()}\n".encode())
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _owner(handle: int) -> str:
    process = os.read(handle, 32).decode("ascii", "replace").strip()
    return f"process {process}" if process.isdigit() else "another process"


def _is(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool:
        os.lseek(handle, 1 << 20, os.SEEK_SET)  # beyond the text, which others may read
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise
        return True
