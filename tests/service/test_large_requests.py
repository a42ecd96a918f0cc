"""A large request is bounded, done in slices, given up with its request, and delays nobody."""

import asyncio
import gzip
import os
import sys
import threading

import pytest

from ltocf.service.lists import MOST_ENTRIES, MOST_REASONS, refuse_too_much
from ltocf.service.problems import Busy, Problem
from ltocf.service.wire.test_client import ask
from ltocf.service.work.slices import NICER, SliceQueue


@pytest.fixture
def names(fitted):
    return fitted("ltocf").dataset.split.train.user_ids.ids.to_list()


@pytest.fixture
def queue():
    made = SliceQueue("test", seconds=60)
    yield made
    made.close()


def test_what_one_request_may_ask_for_is_bounded():
    refuse_too_much(500, 200, False)
    with pytest.raises(Problem, match=r"500 lists of 1000 are more than 100,000 items"):
        refuse_too_much(500, 1000, False)
    with pytest.raises(Problem, match=r"64 lists of 1000 are more than 5,000 items with reasons"):
        refuse_too_much(64, 1000, True)
    assert MOST_REASONS < MOST_ENTRIES


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_large_requests_have_a_lower_priority_than_whatever_is_short(queue):
    def slices():
        yield
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    usual = os.getpriority(os.PRIO_PROCESS, os.getpid())
    assert asyncio.run(queue(slices())) == min(usual + NICER, 19)


@pytest.mark.parametrize("reasons", [False, True])
def test_many_long_lists_are_those_that_one_gets_alone(serve, names, reasons):
    client = serve("ltocf")
    body = {"users": [*names[:30], "nobody"], "k": 60, "reasons": reasons}
    reply = client.post("/recommendations", body).json()
    assert reply["model"] == "1"
    for found in reply["lists"]:
        option = "&reasons=true" if reasons else ""
        alone = client.get(f"/users/{found['user']}/recommendations?k=60{option}").json()
        scores = {entry["item"]: entry["score"] for entry in found["items"]}
        assert scores == pytest.approx({e["item"]: e["score"] for e in alone["items"]}, abs=1e-5)
        explained = reasons and found["source"] == "model"
        assert all(("reasons" in entry) == explained for entry in found["items"])


def test_jobs_get_a_slice_each_in_turn(queue):
    done, both = [], threading.Event()

    def hold():
        both.wait(60)  # until both others wait behind it
        yield

    def job(name):
        for _ in range(3):
            done.append(name)
            yield
        return name

    async def run():
        waiting = [hold(), job("a"), job("b")]
        tasks = [asyncio.ensure_future(queue(slices)) for slices in waiting]
        await asyncio.sleep(0.05)
        both.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(run()) == [None, "a", "b"]
    assert sorted(done[:2]) == ["a", "b"] and sorted(done[2:4]) == ["a", "b"]


def test_a_job_that_nobody_waits_for_ends_at_its_next_slice(queue):
    ended, going = threading.Event(), threading.Event()

    def endless():
        try:
            while True:
                going.set()
                yield
        finally:
            ended.set()

    async def run():
        task = asyncio.ensure_future(queue(endless()))
        await asyncio.to_thread(going.wait, 60)
        task.cancel()

    asyncio.run(run())
    assert ended.wait(60)


def test_a_job_that_takes_too_long_is_given_up_and_ends():
    queue, ended = SliceQueue("test", seconds=0.1), threading.Event()

    def endless():
        try:
            while True:
                yield
        finally:
            ended.set()

    async def run():
        await queue(endless())

    with pytest.raises(Busy, match=r"no answer within 0\.1 seconds"):
        asyncio.run(run())
    assert ended.wait(60)
    queue.close()


def test_closing_does_not_wait_for_a_job_to_end(queue):
    going = threading.Event()

    def endless():
        while True:
            going.set()
            yield

    async def run():
        task = asyncio.ensure_future(queue(endless()))
        await asyncio.to_thread(going.wait, 60)
        queue.close()
        task.cancel()

    asyncio.run(run())


def test_a_client_that_goes_away_takes_its_work_along(serve, names):
    client = serve("ltocf")
    ended, going = threading.Event(), threading.Event()

    def endless(requests):
        try:
            while True:
                going.set()
                yield
        finally:
            ended.set()

    async def receive_then_go():
        if not body:
            await asyncio.to_thread(going.wait, 60)
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": body.pop(), "more_body": False}

    body = [b'{"users": ["a", "b", "c", "d", "e", "f"]}']

    async def send(message):
        pass

    async def app(scope, receive, send):
        await client.app(scope, receive_then_go, send)

    import ltocf.service.routes.recommendations as routes

    before = routes.text_slices  # type: ignore[attr-defined]
    routes.text_slices = endless  # type: ignore[attr-defined]
    try:
        headers = {"content-type": "application/json"}
        asyncio.run(ask(app, "POST", "/recommendations", body[0], headers))
    finally:
        routes.text_slices = before  # type: ignore[attr-defined]
    assert ended.wait(60)


def test_short_lists_are_answered_while_a_large_request_is_computed(serve, names, monkeypatch):
    """The large one ends only after the short one was answered: they do not share a queue."""
    client = serve("ltocf")
    answered = threading.Event()

    def patient(requests):
        while not answered.is_set():
            yield
        return [], b""

    monkeypatch.setattr("ltocf.service.routes.recommendations.text_slices", patient)

    async def both():
        large = asyncio.ensure_future(
            ask(client.app, "POST", "/recommendations", b'{"users": ["a","b","c","d","e"]}')
        )
        for target in (f"/users/{names[0]}/recommendations", "/ready", "/metrics", "/health"):
            assert (await ask(client.app, "GET", target)).status == 200
        reasons = await ask(client.app, "GET", f"/users/{names[0]}/recommendations?reasons=true")
        assert reasons.status == 200
        answered.set()
        return await large

    assert asyncio.run(both()).status == 200


def test_reasons_of_a_long_history_come_apart_from_the_list_and_are_the_same(
    serve, names, monkeypatch
):
    client = serve("ltocf")
    target = f"/users/{names[0]}/recommendations?reasons=true"
    together = client.get(target).json()
    monkeypatch.setattr("ltocf.service.lists.FEW_TERMS", 0)
    queued, queue = [], client.live.reasons

    def count(slices):
        queued.append(slices)
        return queue(slices)

    monkeypatch.setattr(client.live, "reasons", count)
    apart = client.get(target).json()
    assert len(queued) == 1
    assert apart == together
    assert all(entry["reasons"]["because"] for entry in apart["items"])


def test_a_long_answer_is_sent_in_parts_and_read_as_one(serve, names, monkeypatch):
    monkeypatch.setattr("ltocf.service.lists.PART_BYTES", 1000)
    body = {"users": names[:30], "k": 20}
    client = serve("ltocf")
    whole = client.post("/recommendations", body)
    monkeypatch.setattr("ltocf.service.routes.common.IN_ONE_PIECE", 0)
    parts = client.post("/recommendations", body)
    assert parts.body == whole.body
    assert len(parts.body) == int(parts.headers["content-length"])
    small = client.post("/recommendations", body, **{"accept-encoding": "gzip"})
    assert gzip.decompress(small.body) == whole.body
    assert len(small.body) == int(small.headers["content-length"])
