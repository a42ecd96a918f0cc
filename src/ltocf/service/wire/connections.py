"""Limits on connections, so that idle clients cannot exhaust them: deadlines for headers, bodies
and reading, and limits on the size of headers and on the number of connections."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SPARE_FILES = 64  # for the database, the run and the libraries


@dataclass(frozen=True)
class ConnectionLimits:
    """What a client may use of the server."""

    head_seconds: float = 10.0  # from the first byte of a request, or the connection, to its body
    body_seconds: float = 30.0  # from the headers to the end of the body
    read_seconds: float = 30.0  # for a client that does not read its answer
    head_bytes: int = 32_768  # of the request line and the headers
    connections: int = 4096


def raise_file_limit(limits: ConnectionLimits) -> int:
    """Ask the operating system for as many open files as it allows. Returns the number of
    connections that fit."""
    if sys.platform == "win32":  # which has no such limit
        return limits.connections
    import resource

    wanted = limits.connections + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    if soft == resource.RLIM_INFINITY:
        return limits.connections
    return max(1, min(limits.connections, soft - SPARE_FILES))


def make_room_for_files(files: int) -> None:
    """Let the operating system enlarge this process's table of open files at once. Each time that
    it doubles, Linux waits for all threads, which takes tens of milliseconds while requests wait:
    a thousand connections would double it four times."""
    if sys.platform == "win32":
        return
    import fcntl

    opened = os.open(os.devnull, os.O_RDONLY)
    try:
        # Uses that number or the next free one.
        os.close(fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, files - 1))
    except OSError:  # no number is free: the table is already as large as allowed
        pass
    finally:
        os.close(opened)


def limited_protocol(limits: ConnectionLimits) -> Callable[..., LimitedProtocol]:
    """The protocol class for `uvicorn.Config(http=limited_protocol(limits))`."""
    most = raise_file_limit(limits)
    make_room_for_files(most + SPARE_FILES)
    return partial(LimitedProtocol, limits=limits, most=most)


class JoinedWrites:
    """A transport that sends in one packet what is written until `flush`, or in one turn of the
    event loop. uvicorn writes headers and body apart, and each packet costs a system call and wakes
    up the client."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        held, self._held = self._held, []
        if held:
            self._transport.write(b"".join(held))


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn waits for a client without limit; this protocol does not.

    When there are too many connections, the one that has waited longest for the rest of a request
    is closed, so that a new client always gets in.
    """

    def __init__(self, *args: Any, limits: ConnectionLimits, most: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits, self._most = limits, most
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes, self._in_head, self._refused = 0, False, False

    @property
    def waits(self) -> bool:
        """Whether this connection waits for the client, and no answer is under way."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._joined = JoinedWrites(transport, self.loop)
        self.transport = cast(asyncio.Transport, self._joined)
        # A long answer is sent in several parts: with Nagle's algorithm the last one would wait for
        # the client's acknowledgement of the one before, which takes 40 ms. asyncio turns it off
        # only for sockets that were made with the number of TCP.
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > self._most:
            self._make_room()
        self._expect(self._limits.head_seconds, "the headers")

    def _make_room(self) -> None:
        others = [one for one in self.connections if one is not self]
        waiting = [one for one in others if isinstance(one, LimitedProtocol) and one.waits]
        victim = min(waiting, key=lambda one: one._waits_since, default=self)
        victim.transport.abort()
        self.connections.discard(victim)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._deadline is None and self.waits:  # the first bytes after a pause
            self._expect(self._limits.head_seconds, "the headers")
        super().data_received(data)
        if self._in_head and not self._refused:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes:
                self._refuse(431, "Request Header Fields Too Large", "the headers are too large")

    def on_message_begin(self) -> None:
        self._head_bytes, self._in_head = 0, True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self._limits.head_bytes:
            self._refuse(431, "Request Header Fields Too Large", "the headers are too large")
        if self._refused:
            return
        self._in_head = False
        self._expect(self._limits.body_seconds, "the body")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._expect_nothing()
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self._joined.flush()  # counting and logging the request can wait, its client need not
        super().on_response_complete()  # sets the keep-alive timer, unless a request follows
        self._waits_since = self.loop.time()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect(self._limits.read_seconds, None)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._expect_nothing()

    def _expect(self, seconds: float, what: str | None) -> None:
        self._expect_nothing()
        self._waits_since = self.loop.time()
        self._deadline = self.loop.call_later(seconds, self._too_late, what)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self, what: str | None) -> None:
        if what is None or not self.waits:
            self.transport.abort()
        elif self.cycle is not None and self.cycle.response_started:
            self.transport.abort()  # part of an answer was sent: no error can follow
        else:
            self._refuse(408, "Request Timeout", f"{what} took too long")

    def _refuse(self, status: int, phrase: str, detail: str) -> None:
        self._refused = True
        self._expect_nothing()
        body = f'{{"detail":"{detail}"}}'
        head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # ends the wait of a handler for the body
            self.cycle.message_event.set()
        self.transport.write((head + body).encode())
        self.transport.close()
