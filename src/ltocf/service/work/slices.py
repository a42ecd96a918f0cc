"""Long work is done in slices that take turns with those of other long work, after any short work.
It stops when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from ltocf.service.problems import Busy

T = TypeVar("T")
Slices = Generator[None, None, T]  # yields after each slice; what it returns is the answer
PAUSE_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.01  # the longest that a slice waits for short work
NICER = 15  # of the system's 39 steps of priority


class _Job(NamedTuple):
    slices: Slices[Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class SliceQueue:
    """One thread that gives a slice to each of a few jobs in turn, and none to a job whose request
    has ended."""

    def __init__(
        self,
        name: str,
        *,
        seconds: float,
        at_once: int = 4,
        waiting: int = 32,
        first: Callable[[], bool] = lambda: False,  # whether short work is waiting
    ) -> None:
        self._seconds, self._at_once, self._most, self._first = seconds, at_once, waiting, first
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def __call__(self, slices: Slices[T]) -> T:
        """What the generator returns; Busy if too many wait or it takes too long."""
        if self._queue.qsize() >= self._most:
            raise Busy("too many large requests are waiting; try again in a moment")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Job(slices, loop, future))
        try:
            return await asyncio.wait_for(future, self._seconds)
        except TimeoutError:
            raise Busy(
                f"no answer within {self._seconds:g} seconds; ask for fewer or shorter lists"
            ) from None

    def close(self) -> None:
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        _lower_priority()
        active: deque[_Job] = deque()
        while not self._closed:
            while len(active) < self._at_once and not (active and self._queue.empty()):
                if (job := self._queue.get()) is None:
                    return
                active.append(job)
            job = active.popleft()
            if job.future.cancelled():
                job.slices.close()
                continue
            self._let_others_go_first()
            try:
                next(job.slices)
                active.append(job)
            except StopIteration as end:
                _deliver(job, end.value, None)
            except Exception as failure:
                _deliver(job, None, failure)

    def _let_others_go_first(self) -> None:
        until = time.monotonic() + LONGEST_PAUSE_SECONDS
        while self._first() and time.monotonic() < until:
            time.sleep(PAUSE_SECONDS)


def _lower_priority() -> None:
    """Let this thread yield its core to threads that have something short to do. Only Linux has
    priorities of single threads."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(now + NICER, 19))


def _deliver(job: _Job, value: Any, failure: Exception | None) -> None:
    def resolve() -> None:
        if job.future.done():
            return
        if failure is not None:
            job.future.set_exception(failure)
        else:
            job.future.set_result(value)

    if not job.loop.is_closed():
        job.loop.call_soon_threadsafe(resolve)
