"""Compresses long answers for clients that accept it."""

from __future__ import annotations

import asyncio
import gzip
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAST_BYTES = 2000  # a shorter answer would not save a packet
MANY_BYTES = 100_000  # about a millisecond of compressing
LEVEL = 1  # on lists, most of the gain of higher levels for a tenth of the time
KINDS = (b"application/json", b"text/")
REFUSED = re.compile(rb"\s*q\s*=\s*0(\.0*)?\s*")


class Compression:
    """ASGI middleware for answers that are sent in one piece. If an answer contained a secret as
    well as text chosen by a client, its compressed length could reveal the secret (the BREACH
    attack); none of our answers contains one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _wanted(scope):
            await self.app(scope, receive, send)
            return
        start: Message | None = None

        async def send_small(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None:
                head, start = start, None
                body = message.get("body", b"")
                if not message.get("more_body") and len(body) >= LEAST_BYTES and _fits(head):
                    # Large answers on another thread, since all requests wait for the event loop.
                    pressed = (
                        await asyncio.to_thread(_compress, body)
                        if len(body) > MANY_BYTES
                        else _compress(body)
                    )
                    message = {**message, "body": pressed}
                    head = {**head, "headers": _headers(head, len(message["body"]))}
                await send(head)
            await send(message)

        await self.app(scope, receive, send_small)


def _compress(body: bytes) -> bytes:
    return gzip.compress(body, LEVEL, mtime=0)


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
    return plain and headers.get(b"content-type", b"").startswith(KINDS)


def _headers(head: Message, length: int) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in head["headers"] if name.lower() != b"content-length"]
    added = [
        (b"content-encoding", b"gzip"),
        (b"content-length", str(length).encode()),
        (b"vary", b"accept-encoding"),
    ]
    return kept + added
