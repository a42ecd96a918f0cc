"""The latest lists that this process made, for the page; kept in memory only."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

KEPT, NAMED = 100, 3  # lists, and items named of each


class ShownList(NamedTuple):
    time: float  # seconds since 1970
    user: str | None
    model: str
    arm: str | None
    source: str
    milliseconds: float
    items: list[dict[str, str]]  # the first of the list


class Feed:
    """Any thread may add to it or read it."""

    def __init__(self) -> None:
        self._lists: deque[ShownList] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._applied: frozenset[str] = frozenset()

    def add(self, line: ShownList) -> None:
        with self._lock:
            self._lists.appendleft(line)

    def latest(self, most: int) -> list[dict[str, Any]]:
        with self._lock:
            lists = list(self._lists)[:most]
        return [line._asdict() | {"time": _written(line.time)} for line in lists]

    def forget(self, user: str) -> None:
        with self._lock:
            kept = [line for line in self._lists if line.user != user]
            self._lists.clear()
            self._lists.extend(kept)

    def follow(
        self,
        markers: frozenset[str],
        among: Callable[[Iterable[str], frozenset[str]], Iterable[str]],
    ) -> None:
        """Drop the lists of whoever was forgotten since the last call, by another process too;
        `among` finds them by the markers that forgetting leaves."""
        fresh = markers - self._applied
        if fresh:
            self._applied = markers
            with self._lock:
                users = {line.user for line in self._lists if line.user is not None}
            for user in among(users, fresh):
                self.forget(user)


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
