"""Batches: a thread takes all the work that came while it was busy, and does it together."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ltocf.service.problems import Busy

END_SECONDS = 5.0
Asked = TypeVar("Asked")
Next = TypeVar("Next")
Last = TypeVar("Last")
Answer = TypeVar("Answer")


class Late(Busy):
    """The first of two batchers gave no answer in time."""


class _Waiting(NamedTuple, Generic[Asked, Answer]):
    asked: Asked
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    # Called with the answer, which then does not go to the future, and with whether it is the only
    # one of its batch.
    hand_on: Callable[[Answer, bool], None] | None = None


class Batcher(Generic[Asked, Answer]):
    """Calls `work` on threads of its own, with all requests that wait at the time.

    `work` returns an answer or an exception for each. A single request does not wait for others.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Asked]], Sequence[Answer | Exception]],
        *,
        name: str,
        threads: int = 1,
        most: int = 64,
        waiting: int = 4096,
        seconds: float = 10.0,
    ) -> None:
        self._work, self._most, self._waiting, self._seconds = work, most, waiting, seconds
        self._queue: queue.SimpleQueue[_Waiting[Asked, Answer] | None] = queue.SimpleQueue()
        self._working = False  # one of the threads; only for `_idle`
        self._threads = [
            threading.Thread(target=self._run, name=name, daemon=True) for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def _idle(self) -> bool:
        """Whether nothing waits and nothing is done; both may change at any moment."""
        return not self._working and self._queue.empty()

    async def __call__(self, asked: Asked) -> Answer:
        """The answer; Busy if too many wait or it takes too long."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._put(_Waiting(asked, loop, future))
        # asyncio.wait_for does the same and takes several times as long.
        timer = loop.call_later(self._seconds, self._give_up, future)
        try:
            return await future
        finally:
            timer.cancel()

    async def then(
        self, asked: Asked, others: Batcher[Next, Last], following: Callable[[Answer], Next]
    ) -> Last:
        """Ask this batcher, then ask `others` for what `following` makes of the answer. The answer
        goes directly from one thread to the other, without waking up the event loop in between; if
        nothing waits for either thread, the first one does both. Late if this batcher does not
        answer in time, and Busy if `others` take too long."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Last] = loop.create_future()
        timer: asyncio.TimerHandle
        passed = False

        def hand_on(answer: Answer, alone: bool) -> None:
            nonlocal passed
            passed = True
            waiting: _Waiting[Next, Last] = _Waiting(following(answer), loop, future)
            # Waking up another thread may take as long as the work itself.
            if alone and self._queue.empty() and others._idle:
                _deliver([waiting], others._answers([waiting.asked]))
            else:
                others._put(waiting)

        def give_up() -> None:
            nonlocal timer
            if future.done():
                return
            if not passed:  # what comes now comes too late: `_handed_on` drops it
                future.set_exception(Late(self._late))
            else:
                timer = loop.call_later(others._seconds, others._give_up, future)

        timer = loop.call_later(self._seconds, give_up)
        try:
            self._put(_Waiting(asked, loop, future, hand_on))
            return await future
        except Late:
            raise
        except Busy as busy:
            raise busy if passed else Late(busy.detail) from None
        finally:
            timer.cancel()

    def _put(self, waiting: _Waiting[Asked, Answer]) -> None:
        if self._queue.qsize() >= self._waiting:
            raise Busy("too many requests are waiting; try again in a moment")
        self._queue.put(waiting)

    def _give_up(self, future: asyncio.Future[Any]) -> None:
        if not future.done():
            future.set_exception(Busy(self._late))

    @property
    def _late(self) -> str:
        return f"no answer within {self._seconds:g} seconds; try again later"

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(END_SECONDS)  # limited, since the thread may wait for a database that hangs

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < self._most and not self._queue.empty():
                try:
                    another = self._queue.get_nowait()
                except queue.Empty:  # another thread was faster
                    break
                if another is None:
                    self._queue.put(None)
                    break
                batch.append(another)
            wanted = [
                one for one in batch if not one.future.done()
            ]  # timed out, or the client has disconnected
            if wanted:
                self._working = True
                answers = self._answers([one.asked for one in wanted])
                self._working = False
                _deliver(*_handed_on(wanted, answers))

    def _answers(self, asked: Sequence[Asked]) -> Sequence[Answer | Exception]:
        try:
            return self._work(asked)
        except Exception as failure:
            return [failure] * len(asked)


def _handed_on(
    batch: Sequence[_Waiting[Asked, Answer]], answers: Sequence[Answer | Exception]
) -> tuple[list[_Waiting[Asked, Answer]], list[Any]]:
    """Hand on the answers that have a `hand_on`; returns the rest, to be delivered."""
    left, theirs = [], []
    for one, answer in zip(batch, answers, strict=True):
        outcome: Any = answer
        if one.hand_on is not None and not isinstance(answer, Exception):
            if one.future.done():  # given up in the meantime
                continue
            try:
                one.hand_on(answer, len(batch) == 1)
                continue
            except Exception as failure:
                outcome = failure
        left.append(one)
        theirs.append(outcome)
    return left, theirs


def _deliver(
    batch: Sequence[_Waiting[Asked, Answer]], answers: Sequence[Answer | Exception]
) -> None:
    loops = {one.loop for one in batch}
    for loop in loops:
        theirs = [
            (one.future, answer)
            for one, answer in zip(batch, answers, strict=True)
            if one.loop is loop
        ]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, theirs)


def _resolve(theirs: Sequence[tuple[asyncio.Future[Answer], Answer | Exception]]) -> None:
    for future, answer in theirs:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
