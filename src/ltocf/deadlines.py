"""Deadlines: work that runs under one is stopped when it has passed.

Work that reports its progress is stopped when it next does so. A separate process, such as `ltocf
train` starts for a search, is also stopped by a system alarm, which Python handles between two
calls into a library. If even that is not enough, the process that started it kills it.
"""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ltocf.errors import ConfigError
from ltocf.progress import OutOfTime, Progress

# The compiler of Numba, and the import of modules.
WHOLE = ("numba.core.", "llvmlite.", "importlib._bootstrap", "_frozen_importlib")
POSTPONED = 0.2  # seconds until an alarm that came at a bad moment is tried again
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Deadline:
    """A budget of seconds, some of which may already have passed."""

    def __init__(self, seconds: float, *, passed: float = 0.0, alarms: bool = False) -> None:
        self.seconds, self._began = seconds, time.monotonic() - passed
        self._alarms = alarms and hasattr(signal, "setitimer")

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    @property
    def left(self) -> float:
        return self.seconds - self.elapsed

    @contextmanager
    def limit(self, seconds: float, progress: Progress) -> Iterator[Progress]:
        """A progress that raises OutOfTime after these seconds, or at the deadline if that is
        earlier. Where alarms can be set, any other code in the block is interrupted too."""
        ends = time.monotonic() + min(seconds, self.left)

        def watched(stage: str, done: float, total: float | None = None, note: str = "") -> None:
            if time.monotonic() >= ends:
                raise OutOfTime
            progress(stage, done, total, note)

        with self._alarm(ends - time.monotonic()):
            yield watched

    @contextmanager
    def _alarm(self, seconds: float) -> Iterator[None]:
        if not self._alarms or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _stop(signum: int, frame: FrameType | None) -> None:
    if _must_not_be_interrupted(frame):
        signal.setitimer(signal.ITIMER_REAL, POSTPONED)
        return
    raise OutOfTime


def _must_not_be_interrupted(frame: FrameType | None) -> bool:
    """Whether the code at this frame was called by the compiler of Numba or by an import, or
    starts a thread.

    A kernel whose compilation is interrupted is not cached. Every further trial would compile it
    again from the start, and a slow machine would never get beyond that. A thread whose start is
    interrupted is taken off Python's list of threads twice, by itself too, which is a KeyError. A
    library whose import is interrupted, such as what torch loads for its first step, may refuse to
    be loaded again.
    """
    while frame is not None:
        if frame.f_code is threading.Thread.start.__code__:
            return True
        if str(frame.f_globals.get("__name__")).startswith(WHOLE):
            return True
        frame = frame.f_back
    return False


def parse_seconds(text: str) -> float:
    """`90`, `90s`, `10m` or `1h` as seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(text).strip())
    if found is None:
        raise ConfigError(
            f"budget = {text!r}: give seconds, minutes or hours, such as 90, 10m or 1h"
        )
    return float(found[1]) * UNITS[found[2]]


def usual_seconds(pairs: int) -> float:
    """The default budget of a search: about a minute for a small log, ten minutes for a million
    pairs, an hour at most."""
    return min(60 + 540 * pairs / 1e6, 3600.0)


def spoken(seconds: float) -> str:
    """As people say it: 45 s, 9 min, 1.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
