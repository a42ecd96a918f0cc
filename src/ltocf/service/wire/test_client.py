"""One request to an app without a port: for `ltocf serve --get`, and for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from starlette.types import ASGIApp, Message


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: ASGIApp,
    method: str,
    target: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """The app's answer to a request for a path and query, as from this machine."""
    path, _, query = target.partition("?")
    sent = {"host": "127.0.0.1", "content-length": str(len(body))} | dict(headers or {})
    if body:
        sent.setdefault("content-type", "application/json")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(key.lower().encode(), value.encode()) for key, value in sent.items()],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 80),
    }
    got: list[Message] = []

    sent_body = False

    async def receive() -> Message:
        nonlocal sent_body
        if sent_body:  # the whole body was sent: wait for the answer
            await asyncio.Event().wait()
        sent_body = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        got.append(message)

    await app(scope, receive, send)
    start = next(message for message in got if message["type"] == "http.response.start")
    parts = [m.get("body", b"") for m in got if m["type"] == "http.response.body"]
    names = {key.decode(): value.decode() for key, value in start["headers"]}
    return Reply(start["status"], names, b"".join(parts))
