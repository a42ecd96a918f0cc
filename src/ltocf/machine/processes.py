"""Processes that this one is started by, or starts."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def end_with_parent() -> None:
    """From now on, ask this process to end (SIGTERM) when the one that started it has ended, in
    whatever way: one that is killed cannot end those that it has started."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def start_whole(start: Callable[[], None]) -> None:
    """Call what starts processes. It is never interrupted halfway, with a process that waits to be
    told what it is for; and those processes never hear of Ctrl-C, which a terminal sends to all:
    whoever has started them ends them, and says so once."""
    # Python handles signals in the main thread alone. A process inherits what its thread blocks.
    with ThreadPoolExecutor(1, initializer=_block_interrupts) as thread:
        thread.submit(start).result()


def _block_interrupts() -> None:
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
