"""Boards of a running service: from the data set and the events since."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from ltocf.data.times import moments, present
from ltocf.recommend.boards import Touches, board_values, top_rows
from ltocf.recommend.rules import Rules, Shelf
from ltocf.recommend.rules.conditions import shelf_of
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore
from ltocf.service.store.recent import COUNTED, latest_events

FRESH_SECONDS = 5.0
KINDS = ("popular", "trending", "new")
CHIPS = 14  # categories that are offered to filter by


class Boards:
    """Used by one thread. Counts are reused for a few seconds."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._counted: tuple[float, ServedModel, Touches, Shelf] | None = None

    def board(
        self, served: ServedModel, kind: str, k: int, window: timedelta | None, rules: Rules
    ) -> list[tuple[int, float]]:
        """The rows and values of a board, the best first."""
        touches, shelf = self._touches(served)
        values = board_values(kind, touches, shelf, window)
        rows = top_rows(values, k, shelf, rules)
        return [(int(row), float(values[row])) for row in rows]

    def _touches(self, served: ServedModel) -> tuple[Touches, Shelf]:
        known = self._counted
        if known and known[1] is served and time.monotonic() - known[0] < FRESH_SECONDS:
            return known[2], known[3]
        events = [
            event
            for event in latest_events(self.store, COUNTED)
            if event.number > served.trained and served.counts_of(event) > 0
        ]
        rows = served.seen.item_ids.find([event.item or "" for event in events])
        times = np.array([event.time for event in events], dtype="datetime64[us]")
        old = moments(served.seen)
        items = np.concatenate([served.seen.items, rows[rows >= 0]]).astype(np.int32)
        dated = None if old is None else np.concatenate([old, times[rows >= 0]])
        # Windows end at the latest touch and not at the clock: in a log that ended long ago,
        # nothing would be trending otherwise.
        latest = present(served.seen)
        if old is not None and events:
            seconds = max(event.time for event in events) / 1e6
            moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=latest.tzinfo)
            latest = max(latest, moment)
        shelf = shelf_of(served.recommender.dataset, latest)
        self._counted = time.monotonic(), served, Touches(items, dated), shelf
        return self._counted[2], shelf


def categories(served: ServedModel) -> list[dict[str, Any]]:
    """The values of the catalogue's plainest category, the commonest first, each with its rule."""
    catalogue = served.recommender.dataset.catalogue
    found = []
    for name, kind in catalogue.kinds.items():
        if kind in ("category", "tags") and name != catalogue.role("name"):
            counts = catalogue.values_of(name)["tag"].value_counts(sort=True).rows()
            if 2 <= len(counts) <= len(catalogue) / 2:
                found.append((kind != "category", len(counts), name, counts))
    if not found:
        return []
    _, _, name, counts = min(found)
    return [
        {"name": str(value), "rule": f"{name}={value}", "items": count}
        for value, count in counts[:CHIPS]
        if value is not None and not set("|\"'") & set(str(value))
    ]
