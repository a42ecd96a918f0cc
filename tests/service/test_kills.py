"""kill -9 under load: what was acknowledged is there, and the service starts again."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ltocf.service.events import EventStore

KILLS = int(os.environ.get("LTOCF_KILLS", "3"))  # 'make kills' asks for 20


class Server:
    """A service of its own process."""

    def __init__(self, run, store, *options):
        command = [sys.executable, "-m", "ltocf", "serve", run, "--port", "0", "--events", store]
        self.process = subprocess.Popen(
            [*map(str, command), *options], stderr=subprocess.PIPE, text=True
        )
        self.port = None
        for line in self.process.stderr:
            if "http://" in line:
                self.port = int(line.split("127.0.0.1:")[1].split()[0])
                break
        assert self.port, "the service did not start"
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def post(self, connection, body):
        headers = {"content-type": "application/json"}
        connection.request("POST", "/events", json.dumps(body), headers)
        reply = connection.getresponse()
        reply.read()
        return reply.status

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(120)
        self.process.stderr.close()


def write_until_killed(server, name, items, acknowledged):
    connection, n = server.connect(), 0
    while True:
        key = f"{name} {n}"
        try:
            status = server.post(connection, {"user": name, "item": items[n % 50], "key": key})
        except (OSError, http.client.HTTPException):
            return
        if status == 201:
            acknowledged.append(key)
        n += 1


@pytest.mark.slow
@pytest.mark.skipif("LTOCF_KILLS" not in os.environ, reason="'make kills' runs it")
def test_kills_under_load_lose_nothing_that_was_acknowledged(fitted, tmp_path):
    fitted("ease").save(tmp_path / "run")
    items = fitted("ease").dataset.split.train.item_ids.ids.to_list()
    acknowledged = []
    for kill in range(KILLS):
        server = Server(tmp_path / "run", tmp_path / "events.db")
        before = len(acknowledged)
        writers = [
            threading.Thread(
                target=write_until_killed, args=(server, f"{kill} {n}", items, acknowledged)
            )
            for n in range(4)
        ]
        for writer in writers:
            writer.start()
        deadline = time.monotonic() + 300
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


@pytest.mark.slow
@pytest.mark.skipif("LTOCF_KILLS" not in os.environ, reason="'make kills' runs it")
def test_several_workers_share_the_events(fitted, tmp_path):
    """Each request may go to another process, and the next list still knows the last event."""
    fitted("ease").save(tmp_path / "run")
    items = fitted("ease").dataset.split.train.item_ids.ids.to_list()
    server = Server(tmp_path / "run", tmp_path / "events.db", "--workers", "2")
    try:
        for n, item in enumerate(items[:20]):
            connection = server.connect()
            assert server.post(connection, {"user": "ann", "item": item}) == 201
            connection.close()
            connection = server.connect()
            connection.request("GET", "/users/ann/history")
            found = json.loads(connection.getresponse().read())["items"]
            assert {entry["item"] for entry in found} == set(items[: n + 1])
            connection.close()
        connection = server.connect()
        connection.request("GET", "/metrics")
        assert b"ltocf_events_total 20.0" in connection.getresponse().read()
    finally:
        server.end()
