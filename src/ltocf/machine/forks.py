"""Detect whether this process was forked from one in which polars had threads.

A forked child has none of its parent's threads, but polars believes that they exist and waits for
them forever. They cannot be restarted in the child, so an error says what to do instead.
"""

from __future__ import annotations

import os
from pathlib import Path

from ltocf.errors import RunError

TASKS = Path("/proc/self/task")  # Linux only; on other systems nothing is detected or refused


class _PolarsThreads:
    """Whether polars had threads before the last fork, and whether this process lost them in one.

    A fork concerns the whole process, so this state is global. Only the two hooks below write it.
    """

    had_threads_before_fork = False
    lost_threads = False


def refuse_forked() -> None:
    """Raise a RunError if polars would wait forever."""
    if _PolarsThreads.lost_threads:
        raise RunError(
            "this process was forked from one that had used polars, which hangs in the child; "
            "start processes with 'spawn' or 'forkserver', or load the run only after the fork "
            "(docs/service.md#processes-of-your-own)"
        )


def _look() -> None:
    """Called before a fork. A child that lost the threads has none to see, but its own children
    would hang too."""
    _PolarsThreads.had_threads_before_fork = (
        _PolarsThreads.lost_threads or "polars-0" in _thread_names()
    )


def _note() -> None:
    """Called in the child after a fork."""
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
