"""The client in Python against a service that listens, and against one that fails at first."""

import http.server
import json
import threading
import time

import pytest
import uvicorn

from ltocf.client import Client, ServiceError
from ltocf.service.access.guard import Rules
from ltocf.service.app import create_app
from ltocf.service.served_model import ServedModel


@pytest.fixture
def address(fitted, store):
    app = create_app(ServedModel(fitted("ltocf")), store, rules=Rules(token="secret"))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_events_and_lists_go_to_the_service_and_back(address, fitted):
    items = fitted("ltocf").dataset.split.train.item_ids.ids.to_list()
    with Client(address, key="secret") as client:
        assert client.add_event("a/b c", items[0]) == {"accepted": 1, "repeated": 0}
        listed = client.recommend("a/b c", k=3, reasons=True)
        assert listed["user"] == "a/b c" and len(listed["items"]) == 3
        assert "reasons" in listed["items"][0]
        assert [one["item"] for one in client.history("a/b c")["items"]] == [str(items[0])]
        many = client.recommend_many(["a/b c", "other"], k=2)
        assert [one["user"] for one in many] == ["a/b c", "other"]
        assert len(client.recommend_new(items[:2], k=4)["items"]) == 4
        assert client.find_items("", k=2) and client.board("popular", k=2)
        assert client.similar_items(items[0], k=2)["items"] and client.model()["model"] == "1"
        client.forget("a/b c")
        with pytest.raises(ServiceError, match="unknown user") as refused:
            client.history("a/b c")
        assert refused.value.status == 404


def test_a_key_makes_an_event_count_once(address, fitted):
    item = fitted("ltocf").dataset.split.train.item_ids.ids[0]
    with Client(address, key="secret") as client:
        client.add_event("ann", item, key="k")
        assert client.add_event("ann", item, key="k") == {"accepted": 0, "repeated": 1}
        assert client.take_back("k") == {"removed": 1}


def test_what_is_wrong_is_said_once(address):
    wrong = Client(address, key="wrong")
    with wrong, pytest.raises(ServiceError, match="needs a key"):
        wrong.add_event("ann", "tea")
    with pytest.raises(ServiceError, match="write http://"):
        Client("localhost:8000")
    with pytest.raises(ServiceError, match="does not answer"):
        Client("http://127.0.0.1:9", attempts=2, pause=0.001).model()


@pytest.fixture
def shaky():
    """A service that closes the connection, then is busy, then answers; and what it was sent."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            if len(got) == 1:
                self.connection.close()
                return
            self.send_response(503 if len(got) == 2 else 201)
            self.send_header("retry-after", "0")
            body = json.dumps({"accepted": 1, "repeated": 0, "detail": "busy"}).encode()
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()


def test_an_event_that_was_not_answered_is_sent_again_with_the_same_key(shaky):
    address, got = shaky
    with Client(address, pause=0.001) as client:
        assert client.add_event("ann", "tea")["accepted"] == 1
    assert len(got) == 3
    assert len({one["events"][0]["key"] for one in got}) == 1


@pytest.fixture
def scripted():
    """`scripted((status, body), ...)`: a service that answers so, in turn; None closes the
    connection. Its address, and the requests that it got."""
    servers = []

    def start(*replies):
        got, left = [], list(replies)

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                self.rfile.read(int(self.headers["content-length"] or 0))
                got.append(f"{self.command} {self.path}")
                reply = left.pop(0)
                if reply is None:
                    self.close_connection = True
                    return
                status, body = reply
                self.send_response(status)
                self.send_header("retry-after", "0")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", got

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


GONE = (404, b'{"detail": "unknown user"}')


def test_what_a_lost_answer_had_removed_already_is_no_error(scripted):
    address, got = scripted(None, GONE, GONE)
    with Client(address, pause=0.001) as client:
        client.forget("ann")
        assert got == ["DELETE /users/ann"] * 2
        with pytest.raises(ServiceError, match="unknown user"):  # it was never there
            client.forget("ann")


def test_a_rollback_without_an_answer_is_not_sent_again(scripted):
    """It may have been done: a second one would return to the version that was left."""
    address, got = scripted(None, (429, b"{}"), (200, b'{"current": 1}'))
    with Client(address, pause=0.001) as client:
        with pytest.raises(ServiceError, match="does not answer"):
            client.request("POST", "/versions/rollback")
        assert len(got) == 1
        assert client.request("POST", "/versions/rollback") == {"current": 1}  # after a 429


def test_an_answer_of_somebody_else_is_an_error_of_one_line(scripted):
    address, _ = scripted((200, b"<html>welcome</html>"), (502, b"[]"), (400, b"[]"))
    with Client(address, pause=0.001, attempts=1) as client:
        with pytest.raises(ServiceError, match="is this the address of ltocf"):
            client.model()
        for _ in range(2):
            with pytest.raises(ServiceError, match="the service answered"):
                client.model()


def test_a_service_cannot_make_its_clients_sleep_for_a_day(monkeypatch):
    slept = []
    monkeypatch.setattr("ltocf.client.time.sleep", slept.append)
    Client("http://127.0.0.1:9")._wait(1, "86400")
    assert slept == [60.0]
