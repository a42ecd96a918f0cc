"""The latest lists that this process answered, for whoever watches; none of it is written down."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

KEPT, NAMED = 100, 3  # lists, and items named of each


class Feed:
    """Any thread may add to it or read it."""

    def __init__(self) -> None:
        self._lists: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def add(self, model: str, answer: Mapping[str, Any], seconds: float, arm: str | None) -> None:
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "user": answer.get("user"),
            "model": model,
            "arm": arm,
            "source": answer["source"],
            "milliseconds": round(1000 * seconds, 2),
            "items": [
                {"item": entry["item"], "name": entry["name"]} for entry in answer["items"][:NAMED]
            ],
        }
        with self._lock:
            self._lists.appendleft(line)

    def latest(self, most: int) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._lists)[:most]

    def forget(self, user: str) -> None:
        with self._lock:
            kept = [line for line in self._lists if line["user"] != user]
            self._lists.clear()
            self._lists.extend(kept)
