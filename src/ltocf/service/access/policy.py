"""Access rules: the scope that a request needs, and whether its key has it."""

from __future__ import annotations

import hmac
from typing import NamedTuple

from ltocf.service.access.keys import SCOPES, KeyFile
from ltocf.service.page import STATIC

OPEN = ("/", "/health", "/ready")  # contain no data, and neither do the files of the page
ADMIN = ("/versions",)
ASKING = ("/recommendations", "/explanations")  # a POST here only reads
NEEDS_KEY = "needs a key: send 'Authorization: Bearer KEY'"


class Decision(NamedTuple):
    """A status and a line if it is refused; the name of the client if its key has one."""

    refusal: tuple[int, str] | None = None
    client: str | None = None


def needed_scope(method: str, path: str) -> str | None:
    """read, write, admin, or none at all."""
    if path in OPEN or path.startswith(STATIC):
        return None
    if path.startswith(ADMIN):
        return "admin"
    asks = method in ("GET", "HEAD") or (method == "POST" and path in ASKING)
    return "read" if asks and not path.startswith("/events") else "write"


def decide(
    method: str,
    path: str,
    authorization: str,
    *,
    token: str | None,
    keys: KeyFile | None,
    read_needs_key: bool,
) -> Decision:
    """The token allows everything, a key what its scopes allow. If the service has neither token
    nor keys, every request is allowed."""
    scope = needed_scope(method, path)
    free = scope is None or (token is None and keys is None)
    scheme, _, given = authorization.partition(" ")
    sent = given.strip() if scheme.lower() == "bearer" else ""
    key = keys.find(sent) if keys is not None and sent else None
    client = None if key is None else key.name
    if free or (scope == "read" and not read_needs_key):
        return Decision(client=client)
    if token is not None and hmac.compare_digest(
        sent.encode("utf-8", "surrogateescape"), token.encode()
    ):
        return Decision()
    if key is None:
        return Decision((401, NEEDS_KEY))
    if scope not in key.scopes:
        return Decision((403, f"this key may not {_DOES[str(scope)]}: it lacks the scope {scope}"))
    return Decision(client=client)


_DOES = dict(zip(SCOPES, ("read", "write", "change the service"), strict=True))
