"""The service measures itself: which rank had an item in the list just before it was touched?"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sqlalchemy.exc import SQLAlchemyError

from ltocf.errors import LtocfError
from ltocf.recommend.joined import score_people
from ltocf.service.events import Event, EventStore, Quality
from ltocf.service.served import Served

HIT = 20
HOUR = 3_600_000_000  # in microseconds
MOST = 64  # events judged at a time
WAITING = 10_000  # beyond which events are not judged: counting them must not slow the service


@torch.no_grad()
def ranks_before(served: Served, store: EventStore, events: Sequence[Event]) -> NDArray[np.int64]:
    """The rank of each event's item in that user's list just before it, from 1; 0 where there was
    none: they had the item, it is not in the catalogue, or nothing was known of them."""
    ranks = np.zeros(len(events), dtype=np.int64)
    people, places = [], []
    theirs = store.of_users(list({event.user for event in events}), after=served.trained)
    for place, event in enumerate(events):
        earlier = [one for one in theirs.get(event.user, ()) if one.number < event.number]
        person = served.person(event.user, earlier)
        owned = served.owned(person)
        (row,) = served.seen.item_ids.find([event.item or ""])
        if row >= 0 and not served.is_cold(person) and row not in owned:
            people.append((person, owned, row))
            places.append(place)
    if not people:
        return ranks
    known = [person for person, _, _ in people]
    scores = score_people(served.scorer, served.train, known).float().cpu().numpy()
    for place, (_, owned, row), line in zip(places, people, scores, strict=True):
        line[owned] = -np.inf
        before = (line > line[row]) | ((line == line[row]) & (np.arange(len(line)) < row))
        ranks[place] = 1 + before.sum()
    return ranks


def summarise(model: str, events: Sequence[Event], ranks: NDArray[np.int64]) -> list[Quality]:
    """A line for each hour."""
    hours = np.array([event.time // HOUR for event in events])
    lines = []
    for hour in np.unique(hours[ranks > 0]):
        some = ranks[(hours == hour) & (ranks > 0)]
        hits, reciprocal = int((some <= HIT).sum()), float((1 / some).sum())
        lines.append(Quality(model, int(hour), len(some), hits, reciprocal))
    return lines


class Judge:
    """Judges committed events on a thread of its own, after they were acknowledged."""

    def __init__(self, store: EventStore) -> None:
        self.store, self.passed_over = store, 0
        self._queue: queue.SimpleQueue[tuple[Served, Event] | None] = queue.SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._run, name="judge", daemon=True)
        self._thread.start()

    def consider(self, served: Served, events: Sequence[Event]) -> None:
        if self._queue.qsize() > WAITING:
            self.passed_over += len(events)
            return
        for event in events:
            self._idle.clear()
            self._queue.put((served, event))

    def wait(self, seconds: float) -> bool:
        """Until all that was considered is judged."""
        return self._idle.wait(seconds)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < MOST and not self._queue.empty():
                if (another := self._queue.get()) is None:
                    self._queue.put(None)
                    break
                batch.append(another)
            try:
                self._judge(batch)
            except (LtocfError, SQLAlchemyError):  # such as a model that refuses newcomers
                self.passed_over += len(batch)
            if self._queue.empty():
                self._idle.set()

    def _judge(self, batch: Sequence[tuple[Served, Event]]) -> None:
        for served in {id(one): one for one, _ in batch}.values():
            events = [event for one, event in batch if one is served]
            lines = summarise(served.version, events, ranks_before(served, self.store, events))
            if lines:
                self.store.record(lines)
