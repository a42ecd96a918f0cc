"""kill -9 under load: what was acknowledged is there, and the service starts again."""

import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

from ltocf.service.store.events import EventStore

KILLS = int(os.environ.get("LTOCF_KILLS", "3"))  # 'make kills' asks for 20
LONGEST_SECONDS = 300  # of anything here, on a machine that is busy with other things


class Server:
    """A service of its own process."""

    def __init__(self, run, store, *options):
        command = [sys.executable, "-m", "ltocf", "serve", run, "--port", "0", "--events", store]
        self.process = subprocess.Popen(
            [*map(str, command), *options], stderr=subprocess.PIPE, text=True
        )
        self.said, self.port = [], None
        late = threading.Timer(LONGEST_SECONDS, self.process.kill)
        late.start()
        for line in self.process.stderr:
            self.said.append(line)
            if "http://" in line:
                self.port = int(line.split("127.0.0.1:")[1].split()[0])
                break
        late.cancel()
        assert self.port, f"the service did not start: {self.said}"
        self.reader = threading.Thread(target=self.said.extend, args=(self.process.stderr,))
        self.reader.start()

    def post(self, connection, body):
        headers = {"content-type": "application/json"}
        connection.request("POST", "/events", json.dumps(body), headers)
        reply = connection.getresponse()
        reply.read()
        return reply.status

    def get(self, path):
        """By a connection of its own, which any of the workers may take."""
        with closing(self.connect()) as connection:
            connection.request("GET", path)
            return connection.getresponse().read()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST_SECONDS)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(LONGEST_SECONDS)
        self.reader.join(LONGEST_SECONDS)  # the workers have ended too
        self.process.stderr.close()

    def workers(self):
        """The processes that answer; Python starts one more that holds no model."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        lines = {
            int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children.split()
        }
        return {child for child, line in lines.items() if b"spawn_main" in line}


def write_until_killed(server, name, items, acknowledged):
    with closing(server.connect()) as connection, suppress(OSError, http.client.HTTPException):
        for n in count():
            key = f"{name} {n}"
            event = {"user": name, "item": items[n % 50], "key": key}
            if server.post(connection, event) == 201:
                acknowledged.append(key)


@pytest.mark.slow
def test_kills_under_load_lose_nothing_that_was_acknowledged(fitted, tmp_path):
    fitted("ease").save(tmp_path / "run")
    items = fitted("ease").dataset.split.train.item_ids.ids.to_list()
    acknowledged, start_seconds = [], []
    for kill in range(KILLS):
        started = time.monotonic()
        server = Server(tmp_path / "run", tmp_path / "events.db")
        start_seconds.append(time.monotonic() - started)
        before = len(acknowledged)
        writers = [
            threading.Thread(
                target=write_until_killed, args=(server, f"{kill} {n}", items, acknowledged)
            )
            for n in range(4)
        ]
        for writer in writers:
            writer.start()
        deadline = time.monotonic() + LONGEST_SECONDS
        while len(acknowledged) < before + 40 + 13 * kill:  # another moment each time
            assert time.monotonic() < deadline
            time.sleep(0.005)
        server.end(signal.SIGKILL)
        for writer in writers:
            writer.join()
        store = EventStore.open(tmp_path / "events.db")
        kept = [event.key for event in store.since(0)]
        assert len(kept) == len(set(kept))
        assert set(acknowledged) <= set(kept)
        store.close()
    print(f"{KILLS} kills, {len(acknowledged)} events acknowledged, all kept; ", end="")
    print(f"it answered again after {statistics.median(start_seconds):.1f} s (median)")


def write_and_read(server, name, items, acknowledged, asked, wrong):
    """Post an event, then look: each answer has all that was acknowledged, and nothing that this
    client has not sent."""
    headers = {"content-type": "application/json"}
    with closing(server.connect()) as connection, suppress(OSError, http.client.HTTPException):
        for n in count():
            item = items[n % len(items)]
            asked.add(item)
            # A clock that goes back and forth is the client's own affair.
            event = {"user": name, "item": item, "time": 1_700_000_000 + 5000 * (-1) ** n * n}
            connection.request("POST", "/events", json.dumps(event), headers)
            reply = connection.getresponse()
            reply.read()
            if reply.status == 201:
                acknowledged.add(item)
            listed = look(connection, f"/users/{quote(name)}/recommendations?k=5")
            found = look(connection, f"/users/{quote(name)}/history")
            if found is not None:
                items_found = {entry["item"] for entry in found["items"]}
                if not acknowledged <= items_found <= asked:
                    wrong.append((name, acknowledged - items_found, items_found - asked))
            if listed is None or listed.get("stale"):
                continue
            if acknowledged & {entry["item"] for entry in listed["items"]}:
                wrong.append((name, "was recommended what they have"))


def look(connection, path):
    """The answer, or None if the machine was too busy to give one in time."""
    connection.request("GET", path)
    reply = connection.getresponse()
    body = json.loads(reply.read())
    assert reply.status in (200, 503), body
    return body if reply.status == 200 else None


@pytest.mark.slow
def test_kills_with_reads_show_each_client_exactly_what_was_acknowledged(fitted, tmp_path):
    fitted("ease").save(tmp_path / "run")
    items = fitted("ease").dataset.split.train.item_ids.ids.to_list()[:60]
    names = [f"client {n}" for n in range(4)]
    acknowledged, asked = {name: set() for name in names}, {name: set() for name in names}
    wrong = []
    chance = random.Random(0)
    for kill in range(KILLS):
        server = Server(tmp_path / "run", tmp_path / "events.db")
        before = sum(map(len, acknowledged.values()))
        clients = [
            threading.Thread(
                target=write_and_read,
                args=(server, name, items[kill:], acknowledged[name], asked[name], wrong),
            )
            for name in names
        ]
        for client in clients:
            client.start()
        deadline = time.monotonic() + LONGEST_SECONDS
        wanted = before + (chance.randrange(2, 8) if before < 200 else 0)
        while sum(map(len, acknowledged.values())) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(chance.random())
        server.end(signal.SIGKILL)
        for client in clients:
            client.join()
    assert wrong == []
    print(f"{KILLS} kills with reads, {sum(map(len, acknowledged.values()))} items acknowledged")


@pytest.mark.slow
def test_several_workers_share_the_events(fitted, tmp_path):
    """Each request may go to another process, and the next list still knows the last event."""
    fitted("ease").save(tmp_path / "run")
    items = fitted("ease").dataset.split.train.item_ids.ids.to_list()
    server = Server(tmp_path / "run", tmp_path / "events.db", "--workers", "2")
    try:
        for n, item in enumerate(items[:20]):
            with closing(server.connect()) as connection:
                assert server.post(connection, {"user": "ann", "item": item}) == 201
            found = json.loads(server.get("/users/ann/history"))["items"]
            assert {entry["item"] for entry in found} == set(items[: n + 1])
        assert b"ltocf_events_total 20.0" in server.get("/metrics")
    finally:
        server.end()
    assert [line for line in server.said if "http://" in line] == server.said[:1]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_a_worker_that_dies_is_replaced_and_none_outlives_the_service(fitted, tmp_path):
    fitted("ease").save(tmp_path / "run")
    server = Server(tmp_path / "run", tmp_path / "events.db", "--workers", "2")
    before = server.workers()
    assert len(before) == 2
    killed = min(before)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(server.workers() - {killed}) == 2)
    for _ in range(10):
        assert json.loads(server.get("/health"))["status"] == "ok"
    server.end(signal.SIGKILL)
    wait_until(lambda: refuses(server))


def refuses(server):
    try:
        server.get("/health")
    except (OSError, http.client.HTTPException):
        return True
    return False


def wait_until(true):
    deadline = time.monotonic() + LONGEST_SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
