"""One JSON line for each request, its id in and out, and a span if tracing is on.

A line contains the route instead of the path, no ids and no query. The only text from a client is a
request id, if it is harmless.
"""

from __future__ import annotations

import json
import logging
import random
import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ltocf.service.observing.tracing import Tracer

log = logging.getLogger("ltocf.requests")
REQUEST_ID = b"x-request-id"
HARMLESS = re.compile(rb"[A-Za-z0-9._-]{1,64}")  # what a client may call its request


def set_up_logging(requests: bool) -> None:
    """Log messages of the service to standard error; with a line for each request only if that is
    wanted."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("ltocf").setLevel(logging.INFO)
    log.setLevel(logging.INFO if requests else logging.WARNING)


class RequestLog:
    """ASGI middleware around all others. With `paths` a line also has the requested path, which
    contains ids of people and items."""

    def __init__(
        self,
        app: ASGIApp,
        model: Callable[[], str],
        *,
        paths: bool = False,
        tracer: Tracer | None = None,
    ) -> None:
        self.app, self.model, self.paths, self.tracer = app, model, paths, tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        id_, started, status = request_id(scope), time.perf_counter(), 500
        scope.setdefault("state", {})["request_id"] = id_

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID, id_.encode())]
            await send(message)

        span = nullcontext() if self.tracer is None else self.tracer.request(scope)
        with span as open_span:
            try:
                await self.app(scope, receive, send_with_id)
            finally:
                if self.tracer is not None:
                    self.tracer.finish(open_span, scope["method"], route_of(scope), status, id_)
                if log.isEnabledFor(logging.INFO):
                    seconds = time.perf_counter() - started
                    log.info(self._line(scope, id_, route_of(scope), status, seconds))

    def _line(self, scope: Scope, id_: str, route: str, status: int, seconds: float) -> str:
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request": id_,
            "method": scope["method"],
            "route": route,
            "status": status,
            "milliseconds": round(1000 * seconds, 2),
            "model": self.model(),
        }
        if (client := scope["state"].get("client_name")) is not None:
            line["client"] = client  # the name that the operator gave its key
        if self.paths:
            line["path"] = scope["path"]
        return json.dumps(line)


def request_id(scope: Scope) -> str:
    """The client's own id if it is harmless, else a new one."""
    for name, value in scope["headers"]:
        if name == REQUEST_ID and HARMLESS.fullmatch(value):
            return str(value.decode())
    return f"{random.getrandbits(128):032x}"  # uuid4 would make a system call each time


def route_of(scope: Scope) -> str:
    """The route's pattern, such as /users/{id}/history; 'other' for an unknown path."""
    return str(getattr(scope.get("route"), "path", "other")).replace(":id}", "}")
