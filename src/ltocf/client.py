"""A client of the service in Python, with nothing but the standard library.

    from ltocf.client import Client

    with Client("http://127.0.0.1:8000", key="ltocf_...") as shop:
        shop.add_event("ann", "tea")
        shop.recommend("ann", k=5, reasons=True)

A request that was not answered, or answered with 429 or 503, is sent again a few times. Events
carry a key that is made once, so that one that is delivered twice counts once. What would count
twice, such as a change of versions, is not sent again unless the service said that it was not done.
"""

from __future__ import annotations

import gzip
import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ltocf.errors import LtocfError

AGAIN = (429, 502, 503, 504)  # statuses that may be others in a moment
NOT_DONE = (429,)  # and that say for certain that nothing was done
MOST_EVENTS = 1000  # of one request
MOST_SECONDS = 60.0  # that a service may ask for before the next attempt
# What has the same effect when it arrives twice: these methods, and of POST these addresses, since
# events have keys.
REPEATABLE, ASKING = ("GET", "PUT", "PATCH", "DELETE"), ("/events", "/recommendations")
Answer = dict[str, Any]


class ServiceError(LtocfError):
    """The service refused; `status` says how, and 0 that it was not reached."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """One connection for each thread that uses it; any number of threads may."""

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        attempts: int = 5,
        pause: float = 0.1,
    ) -> None:
        """`pause` seconds after the first failure, then twice as long each time, with some chance
        in it, so that many clients do not come back at once."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServiceError(f"address {address!r}: write http://HOST:PORT or https://HOST")
        self._parts, self._timeout, self._attempts, self._pause = parts, timeout, attempts, pause
        self._headers = {"accept-encoding": "gzip"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._local = threading.local()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    # What is written

    def add_event(self, user: str, item: str, **others: Any) -> Answer:
        """Commit one event; `time`, `kind` and `key` as in the interface."""
        return self.add_events([{"user": user, "item": item, **others}])

    def add_events(self, events: Iterable[Mapping[str, Any]]) -> Answer:
        """Commit any number of events, a thousand at a time; each gets a key unless it has one."""
        keyed = [{"key": uuid.uuid4().hex, **event} for event in events]
        total = {"accepted": 0, "repeated": 0}
        for start in range(0, len(keyed), MOST_EVENTS):
            body = {"events": keyed[start : start + MOST_EVENTS]}
            found = self.request("POST", "/events", body)
            total = {name: total[name] + found[name] for name in total}
        return total

    def take_back(self, key: str) -> Answer:
        """Take back the event with this key, as if it had never come."""
        return self.request("DELETE", f"/events/{_part(key)}")

    def forget(self, user: str) -> None:
        self.request("DELETE", f"/users/{_part(user)}")

    def put_item(self, item: str, **attributes: Any) -> Answer:
        """All that an item is from now on, new or not."""
        return self.request("PUT", f"/items/{_part(item)}", attributes)

    def item(self, item: str) -> Answer:
        """What an item is now."""
        found: Answer = self._get(f"/items/{_part(item)}")["item"]
        return found

    def change_item(self, item: str, **attributes: Any) -> Answer:
        """Some of its attributes, such as available=False; the others stay."""
        return self.request("PATCH", f"/items/{_part(item)}", attributes)

    def hide_item(self, item: str) -> Answer:
        """Take it off the shelf."""
        return self.request("DELETE", f"/items/{_part(item)}")

    # What is asked

    def recommend(self, user: str, k: int = 10, **options: Any) -> Answer:
        """The list of a user; `reasons`, `exclude`, `candidates`, `where` and others as in the
        interface."""
        return self._get(f"/users/{_part(user)}/recommendations", k=k, **options)

    def recommend_many(self, users: Sequence[str], k: int = 10, **options: Any) -> list[Answer]:
        found = self.request("POST", "/recommendations", {"users": list(users), "k": k, **options})
        lists: list[Answer] = found["lists"]
        return lists

    def recommend_new(self, history: Sequence[str], k: int = 10, **options: Any) -> Answer:
        """The list of somebody new, by what they have, the latest last."""
        body = {"history": list(history), "k": k, **options}
        found: Answer = self.request("POST", "/recommendations", body)["lists"][0]
        return found

    def explain(self, item: str, **whose: Any) -> Answer:
        """The exact terms of one score, for `user=` or for `history=`."""
        return self._get("/explanations", item=item, **whose)

    def similar_items(self, item: str, k: int = 10) -> Answer:
        return self._get(f"/items/{_part(item)}/similar", k=k)

    def similar_users(self, user: str, k: int = 10) -> Answer:
        return self._get(f"/users/{_part(user)}/similar", k=k)

    def history(self, user: str) -> Answer:
        return self._get(f"/users/{_part(user)}/history")

    def find_items(self, query: str, k: int = 10, **options: Any) -> list[Answer]:
        items: list[Answer] = self._get("/items", query=query, k=k, **options)["items"]
        return items

    def board(self, kind: str = "popular", k: int = 10, **options: Any) -> list[Answer]:
        """'popular', 'trending' or 'new'."""
        items: list[Answer] = self._get(f"/{kind}", k=k, **options)["items"]
        return items

    def model(self) -> Answer:
        return self._get("/model")

    # How

    def _get(self, path: str, **query: Any) -> Answer:
        given = {name: _written(value) for name, value in query.items() if value is not None}
        return self.request("GET", f"{path}?{urlencode(given, doseq=True)}" if given else path)

    def request(self, method: str, target: str, body: Any = None) -> Answer:
        """The answer to any request of the interface; a ServiceError if it is refused."""
        sent = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({} if sent is None else {"content-type": "application/json"})
        repeatable = method in REPEATABLE or target in ASKING
        unanswered = False
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            try:
                status, waiting, content = self._send(method, target, sent, headers)
            except (OSError, http.client.HTTPException) as failure:
                self.close()
                if last or not repeatable:
                    where = f"{self._parts.hostname}:{self._parts.port or ''}"
                    raise ServiceError(f"{where} does not answer: {failure!r}") from None
                waiting, unanswered = None, True
            else:
                if status < 400:
                    return _answer(content, status)
                if status == 404 and method == "DELETE" and unanswered:
                    return {}  # an earlier attempt has removed it
                if last or status not in (AGAIN if repeatable else NOT_DONE):
                    raise ServiceError(_detail(content, status), status)
                unanswered = unanswered or status not in NOT_DONE
            self._wait(attempt, waiting)
        raise AssertionError("the last attempt returns or raises")

    def _send(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str | None, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            host = str(self._parts.hostname)
            connection = kind(host, self._parts.port, timeout=self._timeout)
            self._local.connection = connection
        connection.request(method, self._parts.path.rstrip("/") + target, body, dict(headers))
        reply = connection.getresponse()
        content = reply.read()
        if reply.getheader("content-encoding") == "gzip":
            content = gzip.decompress(content)
        return reply.status, reply.getheader("retry-after"), content

    def _wait(self, attempt: int, asked: str | None) -> None:
        pause = self._pause * 2 ** (attempt - 1) * (0.5 + random.random())  # noqa: S311 - no secret
        told = float(asked) if asked is not None and asked.isdecimal() else 0.0
        time.sleep(max(pause, min(told, MOST_SECONDS)))


def _part(id_: str) -> str:
    """An id as part of a URL path; '.' and '..' are refused, since they mean directories."""
    text = quote(str(id_), safe="")
    return text.replace(".", "%2E") if set(text) == {"."} else text


def _written(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _answer(content: bytes, status: int) -> Answer:
    try:
        found: Answer = json.loads(content) if content else {}
    except ValueError:
        raise ServiceError(
            "the answer is not JSON: is this the address of ltocf?", status
        ) from None
    return found


def _detail(content: bytes, status: int) -> str:
    try:
        return str(json.loads(content)["detail"])
    except (ValueError, LookupError, TypeError):
        return f"the service answered {status}"
