"""Slow clients are cut off, large headers are refused, and a new client always gets in."""

import gc
import os
import socket
import threading
import time
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
import uvicorn

from ltocf.service.server import collect_rarely
from ltocf.service.wire.connections import (
    ConnectionLimits,
    LimitedProtocol,
    limited_protocol,
    make_room_for_files,
)

PATIENCE_SECONDS = 60  # of the tests themselves


async def echo(scope, receive, send):
    """An app that answers with its request's body."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(kind=None, **limits):
    protocol = limited_protocol(ConnectionLimits(**limits))
    if kind is not None:
        protocol = partial(kind, limits=ConnectionLimits(), most=10)
    config = uvicorn.Config(echo, port=0, http=protocol, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()
    finally:
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)


def connect(address):
    return socket.create_connection(address, PATIENCE_SECONDS)


def read_all(connection):
    """Until the other side closes."""
    got = b""
    try:
        while more := connection.recv(65536):
            got += more
    except ConnectionResetError:
        pass
    return got


def answers(address):
    with closing(connect(address)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        return read_all(connection).startswith(b"HTTP/1.1 200")


def test_headers_and_body_are_sent_at_once():
    """Each packet costs a system call and wakes up the client."""
    sent = []

    class Counted(LimitedProtocol):
        def connection_made(self, transport):
            write = transport.write

            def counted(data):
                sent.append(bytes(data))
                write(data)

            transport.write = counted
            super().connection_made(transport)

    with serving(Counted) as address, closing(connect(address)) as client:
        for _ in range(2):  # the second on the connection that was kept
            client.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nabcd")
            got = b""
            while not got.endswith(b"abcd"):
                got += client.recv(65536)
    assert [one[:15] for one in sent] == [b"HTTP/1.1 200 OK"] * 2
    assert all(one.endswith(b"\r\n\r\nabcd") for one in sent)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nx-half: "])
def test_headers_that_do_not_come_are_not_waited_for(sent):
    with serving(head_seconds=0.2) as address, closing(connect(address)) as slow:
        slow.sendall(sent)
        assert read_all(slow).startswith(b"HTTP/1.1 408")
        assert answers(address)


def test_a_byte_now_and_then_does_not_prolong_the_deadline():
    with serving(head_seconds=0.3) as address, closing(connect(address)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        deadline = time.monotonic() + PATIENCE_SECONDS
        with pytest.raises(OSError):
            while time.monotonic() < deadline:
                slow.sendall(b"a")
                time.sleep(0.02)


def test_a_body_that_does_not_come_is_not_waited_for():
    with serving(body_seconds=0.2) as address, closing(connect(address)) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nfive.")
        assert read_all(slow).startswith(b"HTTP/1.1 408")
        assert answers(address)


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
def test_large_headers_are_refused_before_they_have_ended(end):
    with serving(head_bytes=1000) as address, closing(connect(address)) as large:
        large.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nx-large: " + b"a" * 5000 + end)
        assert read_all(large).startswith(b"HTTP/1.1 431")
        assert answers(address)


def test_many_small_headers_on_one_connection_are_not_added_up():
    with serving(head_bytes=200) as address, closing(connect(address)) as kept:
        for _ in range(20):
            kept.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nabcd")
            got = b""
            while not got.endswith(b"abcd"):
                got += kept.recv(65536)
            assert got.startswith(b"HTTP/1.1 200")


def test_when_it_is_full_the_longest_waiting_connection_makes_room():
    with serving(connections=3) as address:
        slow = [connect(address) for _ in range(3)]
        for n, connection in enumerate(slow):
            connection.sendall(f"GET /{n} HTTP/1.1\r\n".encode())
            time.sleep(0.05)
        assert answers(address)
        assert read_all(slow[0]) == b""
        slow[2].sendall(b"host: x\r\nconnection: close\r\n\r\n")
        assert read_all(slow[2]).startswith(b"HTTP/1.1 200")
        for connection in slow:
            connection.close()


def test_a_client_that_does_not_read_its_answer_is_cut_off():
    body = b"a" * 20_000_000
    head = f"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with serving(read_seconds=0.3) as address, closing(connect(address)) as lazy:
        lazy.sendall(head + body)
        time.sleep(1)
        assert len(read_all(lazy)) < len(body)
        assert answers(address)


def test_answers_do_not_wait_for_an_acknowledgement_of_their_headers():
    """Also on a socket that was made without naming TCP, as a supervisor may hand it over."""
    seen = []

    class Looked(LimitedProtocol):
        def connection_made(self, transport):
            super().connection_made(transport)
            connection = transport.get_extra_info("socket")
            seen.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    listening = socket.socket(socket.AF_INET)
    listening.bind(("127.0.0.1", 0))
    protocol = partial(Looked, limits=ConnectionLimits(), most=10)
    config = uvicorn.Config(echo, http=protocol, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    assert answers(listening.getsockname())
    server.should_exit = True
    thread.join(PATIENCE_SECONDS)
    assert seen == [1]


def test_the_unit_allows_as_many_files_as_there_may_be_connections():
    from pathlib import Path

    unit = (Path(__file__).parents[2] / "deploy" / "ltocf.service").read_text()
    (line,) = [line for line in unit.splitlines() if line.startswith("LimitNOFILE=")]
    assert int(line.partition("=")[2]) > ConnectionLimits().connections


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc, as on Linux")
def test_the_table_of_open_files_has_room_before_the_first_client_comes():
    def opened_and_room():
        lines = Path("/proc/self/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return set(os.listdir("/proc/self/fd")), int(fields["FDSize"])

    before, room = opened_and_room()
    make_room_for_files(2 * room)
    after, more = opened_and_room()
    assert (after, more) == (before, 2 * room)
    make_room_for_files(2**30)  # more than is allowed: nothing happens
    assert opened_and_room() == (after, more)


def test_what_is_there_when_the_service_starts_is_not_collected_again():
    thresholds = gc.get_threshold()
    gc.set_threshold(700)  # a command that ran in this process before may have raised it
    try:
        collect_rarely()
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold()[0] > 700
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
