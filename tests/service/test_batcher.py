"""Work that is handed on from thread to thread: whoever asked gets the last answer, or is told who
was too slow."""

import asyncio
import threading
import time
from functools import partial

import pytest

from ltocf.service.problems import Busy, Unknown
from ltocf.service.work.batcher import Batcher, Late


@pytest.fixture
def queue():
    """`queue(work)`; they end with the test."""
    made = []

    def make(work, **options):
        made.append(Batcher(work, name="test", **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def doubled(batch):
    return [2 * number for number in batch]


def test_what_follows_from_an_answer_is_answered_by_the_others(queue):
    first, second = queue(doubled), queue(lambda batch: [f"<{text}>" for text in batch])

    async def ask():
        return await asyncio.gather(*(first.then(n, second, lambda n: n + 1) for n in range(9)))

    assert asyncio.run(ask()) == [f"<{2 * n + 1}>" for n in range(9)]


def test_one_thread_does_both_if_nothing_waits_and_two_share_if_something_does(queue):
    """Waking up a thread takes about as long as a short list."""

    def names(batch):
        return [threading.current_thread() for _ in batch]

    def hold(batch):
        begun.set()
        ended.wait()
        return batch

    begun, ended = threading.Event(), threading.Event()
    first, second = queue(names), queue(names)
    reader, other = asyncio.run(first.then(1, second, lambda thread: thread)), None
    assert reader is asyncio.run(first(1))

    async def beside_another():
        nonlocal other
        busy = queue(lambda batch: hold(batch) if batch == ["long"] else names(batch))
        long = asyncio.ensure_future(busy("long"))
        await asyncio.to_thread(begun.wait)
        short = asyncio.ensure_future(first.then(1, busy, lambda thread: thread))
        while busy._queue.empty():
            await asyncio.sleep(0.001)
        ended.set()
        await long
        other = await short
        assert other is await busy("short")

    asyncio.run(beside_another())
    assert other is not reader


def test_who_was_too_slow_or_too_busy_is_told_apart(queue):
    ended = threading.Event()

    def wait(batch):
        ended.wait()
        return batch

    quick, slow = queue(doubled, seconds=0.05), queue(wait, seconds=0.05)
    full = queue(doubled, waiting=0)
    for asked, others, kind in [(slow, quick, Late), (full, quick, Late), (quick, slow, Busy)]:
        with pytest.raises(Busy) as raised:
            asyncio.run(asked.then(1, others, lambda n: n))
        assert raised.type is kind
    crowded = queue(wait, waiting=1, seconds=0.05)
    for asking in (crowded, crowded, partial(quick.then, others=crowded, following=lambda n: n)):
        with pytest.raises(Busy) as raised:
            asyncio.run(asking(1))
        assert raised.type is Busy
    ended.set()


def test_an_answer_that_comes_just_after_the_time_is_late(queue):
    """Whoever waits hears of it one turn of the loop later; in that turn the answer may come."""
    ended, handed_on = threading.Event(), threading.Event()

    def wait(batch):
        ended.wait()
        return batch

    slow, quick = queue(wait, seconds=0.05), queue(doubled)

    def hand_on(number):
        handed_on.set()
        return number

    def let_it_answer():
        ended.set()
        handed_on.wait(0.5)

    async def ask():
        loop = asyncio.get_running_loop()
        loop.call_later(0.02, time.sleep, 0.1)  # both of those that follow are due then
        loop.call_later(0.06, let_it_answer)
        await slow.then(1, quick, hand_on)

    with pytest.raises(Busy) as raised:
        asyncio.run(ask())
    assert raised.type is Late
    assert not handed_on.is_set()


def test_what_goes_wrong_on_the_way_is_the_answer(queue):
    def refuse(batch):
        return [Unknown("nothing is known") for _ in batch]

    def unknown(number):
        raise Unknown(f"unknown item {number}")

    first, failing = queue(doubled), queue(refuse)
    with pytest.raises(Unknown, match="unknown item 2"):
        asyncio.run(first.then(1, first, unknown))
    with pytest.raises(Unknown, match="nothing"):
        asyncio.run(failing.then(1, first, lambda n: n))
