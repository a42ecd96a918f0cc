"""Compresses long answers for clients that accept it."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAST_BYTES = 2000  # a shorter answer would not save a packet
MANY_BYTES = 100_000  # about a millisecond of compressing
LEVEL = 1  # on lists, most of the gain of higher levels for a tenth of the time
KINDS = (b"application/json", b"text/")
GZIP = 31  # what zlib calls the form of gzip
REFUSED = re.compile(rb"\s*q\s*=\s*0(\.0*)?\s*")


class Compression:
    """ASGI middleware for answers whose length is known. If an answer contained a secret as
    well as text chosen by a client, its compressed length could reveal the secret (the BREACH
    attack); none of our answers contains one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _wanted(scope):
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        parts: list[bytes] = []

        async def send_small(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                if _fits(message):
                    start = message
                else:
                    await send(message)
                return
            if start is None:
                await send(message)
                return
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            # Large answers on another thread, since all requests wait for the event loop.
            many = sum(map(len, parts)) > MANY_BYTES
            pressed = await asyncio.to_thread(_compress, parts) if many else _compress(parts)
            await send({**start, "headers": _headers(start, len(pressed))})
            await send({**message, "body": pressed})

        await self.app(scope, receive, send_small)


def _compress(parts: Sequence[bytes]) -> bytes:
    press = zlib.compressobj(LEVEL, wbits=GZIP)
    return b"".join([*map(press.compress, parts), press.flush()])


def _wanted(scope: Scope) -> bool:
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            return any(map(_is_gzip, value.lower().split(b",")))
    return False


def _is_gzip(offer: bytes) -> bool:
    """'gzip' or 'gzip;q=1.0', as some clients always write, but not 'gzip;q=0'."""
    coding, _, parameters = offer.partition(b";")
    return coding.strip() == b"gzip" and REFUSED.fullmatch(parameters) is None


def _fits(head: Message) -> bool:
    headers = {name.lower(): value for name, value in head.get("headers", ())}
    plain = b"content-encoding" not in headers
    long = int(headers.get(b"content-length", 0)) >= LEAST_BYTES
    return plain and long and headers.get(b"content-type", b"").startswith(KINDS)


def _headers(head: Message, length: int) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in head["headers"] if name.lower() != b"content-length"]
    added = [
        (b"content-encoding", b"gzip"),
        (b"content-length", str(length).encode()),
        (b"vary", b"accept-encoding"),
    ]
    return kept + added
