"""Middleware before every route: who may ask, how much and how often."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ltocf.service.access.keys import KeyFile
from ltocf.service.access.policy import decide

LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
NOT_KEPT = (b"cache-control", b"no-store")  # a list is right until the next event
CLIENTS = 10_000  # most clients whose rates are remembered


@dataclass(frozen=True)
class Rules:
    token: str | None = None
    read_needs_token: bool = False
    keys: KeyFile | None = None  # of clients, each with its scopes
    hosts: tuple[str, ...] | None = None  # host names that are answered; None: any
    body_bytes: int = 1_000_000
    rate: float | None = None  # requests a second from one client
    burst_seconds: float = 2.0


class Guard:
    """ASGI middleware. `observe` is called with the method, route, status and seconds of each
    request."""

    def __init__(
        self, app: ASGIApp, rules: Rules, observe: Callable[[str, str, int, float], None]
    ) -> None:
        self.app, self.rules, self.observe = app, rules, observe
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500
        method = scope["method"]
        if method == "HEAD":  # answered like GET, without the body
            scope = {**scope, "method": "GET"}

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                given = {name.lower() for name, _ in message["headers"]}
                if b"cache-control" not in given:
                    message["headers"].append(NOT_KEPT)
                if status == 503 and b"retry-after" not in given:
                    message["headers"].append((b"retry-after", b"1"))
            elif method == "HEAD":
                message = {**message, "body": b""}
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await _refuse(send_with_headers, *refusal)
            else:
                await self._limited(scope, receive, send_with_headers)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.observe(method, route, status, time.perf_counter() - started)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        # The first of each name, as Starlette's Headers would find, which scan all at every look.
        headers = {name: value.decode("latin-1") for name, value in reversed(scope["headers"])}
        if self.rules.hosts is not None and _host(headers.get(b"host", "")) not in self.rules.hosts:
            return 421, "this service does not answer to that host name"
        if self.rules.rate is not None and not self._may_ask(scope, self.rules.rate):
            return 429, f"more than {self.rules.rate:g} requests a second; slow down"
        rules = self.rules
        decision = decide(
            scope["method"],
            scope["path"],
            headers.get(b"authorization", ""),
            token=rules.token,
            keys=rules.keys,
            read_needs_key=rules.read_needs_token,
        )
        scope.setdefault("state", {})["client_name"] = decision.client
        if decision.refusal is not None:
            return decision.refusal
        length = headers.get(b"content-length", "")
        if length.isdigit() and int(length) > self.rules.body_bytes:
            return 413, f"the body has more than {self.rules.body_bytes:,} bytes"
        return None

    def _may_ask(self, scope: Scope, rate: float) -> bool:
        """A bucket for each client that fills with `rate` and holds a burst."""
        client, now = (scope.get("client") or ("",))[0], time.monotonic()
        most = max(1.0, rate * self.rules.burst_seconds)
        left, before = self._buckets.pop(client, (most, now))
        left = min(most, left + (now - before) * rate)
        self._buckets[client] = (max(left - 1, 0) if left >= 1 else left, now)
        if len(self._buckets) > CLIENTS:
            self._buckets.popitem(last=False)
        return left >= 1

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request with a body that is cut off at the limit, even if its header announced
        less."""
        got, started, refused = 0, False, False

        async def receive_some() -> Message:
            nonlocal got, refused
            message = await receive()
            got += len(message.get("body", b""))
            if got > self.rules.body_bytes and not started:
                refused = True
                return {"type": "http.disconnect"}
            return message

        async def send_unless_refused(message: Message) -> None:
            nonlocal started
            if not refused:
                started = True
                await send(message)

        try:
            await self.app(scope, receive_some, send_unless_refused)
        except Exception:
            if not refused:
                raise
        if refused and not started:
            await _refuse(send, 413, f"the body has more than {self.rules.body_bytes:,} bytes")


def _host(header: str) -> str:
    """'[::1]:8000' -> '::1'"""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
