"""Whether this process was forked from one in which polars had threads.

A forked child has none of its parent's threads, but polars believes that they are there and waits
for them for ever. Nothing can start them again in the child, so it is told what to do instead.
"""

from __future__ import annotations

import os
from pathlib import Path

from ltocf.errors import RunError

TASKS = Path("/proc/self/task")  # Linux only; elsewhere nothing is known, and nothing refused


class _PolarsThreads:
    """Whether polars had threads: before the last fork, and in the process that this one came from.

    It is state of the process, as a fork is, and no setting: only the two hooks below write it.
    """

    had_threads_before_fork = False
    lost_threads = False


def refuse_forked() -> None:
    """A RunError where polars would wait for ever."""
    if _PolarsThreads.lost_threads:
        raise RunError(
            "this process was forked from one that had used polars, which hangs in the child; "
            "start processes with 'spawn' or 'forkserver', or load the run after the fork alone "
            "(docs/service.md#processes-of-your-own)"
        )


def _look() -> None:
    """Before a fork. A child that forks in turn has no such threads, and its children hang too."""
    _PolarsThreads.had_threads_before_fork = (
        _PolarsThreads.lost_threads or "polars-0" in _thread_names()
    )


def _note() -> None:
    """In the child."""
    _PolarsThreads.lost_threads = _PolarsThreads.had_threads_before_fork


def _thread_names() -> list[str]:
    names = []
    for file in TASKS.glob("*/comm"):
        try:
            names.append(file.read_text().strip())
        except OSError:  # it has just ended
            continue
    return names


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_look, after_in_child=_note)
