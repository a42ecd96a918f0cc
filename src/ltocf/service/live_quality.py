"""Live quality: the rank that an item had in the user's list just before the user touched it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ltocf.errors import ConfigError
from ltocf.recommend.lists import ListOptions, final_scores
from ltocf.recommend.people import Person
from ltocf.scorers.scorer import NOBODY
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import Event, EventStore, Quality, now

log = logging.getLogger("ltocf.service")

# Called with each model, the events judged by its lists, and their ranks.
RankListener = Callable[[ServedModel, Sequence[Event], NDArray[np.int64]], None]
HIT = 20
HOUR = 3_600_000_000  # in microseconds
MOST = 64  # events judged at a time
WAITING = 10_000  # events; with more waiting, new ones are not judged, to keep the service fast


def ranks_before(
    served: ServedModel, store: EventStore, events: Sequence[Event]
) -> NDArray[np.int64]:
    """The rank of each event's item in that user's list just before it, from 1; 0 if it had no
    rank: the user had the item, it is not in the catalogue or not available, the user had no
    history, or they are new and the model has no lists for newcomers."""
    ranks = np.zeros(len(events), dtype=np.int64)
    people: list[Person] = []
    wanted: list[tuple[int, int]] = []  # the place of an event and the row of its item
    theirs = store.of_users(list({event.user for event in events}), after=served.trained)
    for place, event in enumerate(events):
        earlier = [one for one in theirs.get(event.user, ()) if one.number < event.number]
        person = served.person(event.user, earlier)
        (row,) = served.seen.item_ids.find([event.item or ""])
        # An item that is sent back or hidden was no success of the list.
        if row >= 0 and served.counts_of(event) > 0 and not served.is_cold(person):
            people.append(person)
            wanted.append((place, int(row)))
    for (place, row), scores in zip(wanted, _scores(served, people), strict=True):
        if scores is None or scores[row] == -np.inf:
            continue
        before = (scores > scores[row]) | ((scores == scores[row]) & (np.arange(len(scores)) < row))
        ranks[place] = 1 + before.sum()
    return ranks


def _scores(served: ServedModel, people: Sequence[Person]) -> list[NDArray[np.float32] | None]:
    """The scores of each, None for newcomers if the model refuses them, as MF does."""
    found: list[NDArray[np.float32] | None] = [None] * len(people)
    for new in (False, True):
        which = [n for n, person in enumerate(people) if (person.row == NOBODY) == new]
        if not which:
            continue
        try:
            scores = final_scores(served.fitted, [people[n] for n in which], ListOptions())
        except ConfigError:
            if not new:
                raise
            continue
        for n, line in zip(which, scores, strict=True):
            found[n] = line
    return found


def summarise(model: str, hour: int, ranks: NDArray[np.int64]) -> list[Quality]:
    """A line for the hour, if anything was ranked."""
    some = ranks[ranks > 0]
    if not len(some):
        return []
    hits, reciprocal = int((some <= HIT).sum()), float((1 / some).sum())
    return [Quality(model, hour, len(some), hits, reciprocal)]


class Judge:
    """Finds the ranks of committed events in the lists of the model in use, on a thread of its
    own."""

    def __init__(self, store: EventStore, told: RankListener | None = None) -> None:
        self.store, self.passed_over, self._told = store, 0, told
        self._queue: queue.SimpleQueue[tuple[ServedModel, Event] | None] = queue.SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._run, name="judge", daemon=True)
        self._thread.start()

    def consider(self, served: ServedModel, events: Sequence[Event]) -> None:
        if self._queue.qsize() > WAITING:
            self.passed_over += len(events)
            return
        for event in events:
            self._idle.clear()
            self._queue.put((served, event))

    def wait(self, seconds: float) -> bool:
        """Wait until all events passed on so far are judged."""
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
            except Exception as failure:  # after any failure, the next events are judged again
                self.passed_over += len(batch)
                log.warning(f"live quality: {len(batch)} events passed over: {failure!r}")
            if self._queue.empty():
                self._idle.set()

    def _judge(self, batch: Sequence[tuple[ServedModel, Event]]) -> None:
        for served in {id(one): one for one, _ in batch}.values():
            events = [event for one, event in batch if one is served]
            ranks = ranks_before(served, self.store, events)
            if self._told is not None:
                self._told(served, events, ranks)
            # By the hour of arrival, since clients may send any time.
            lines = summarise(served.version, now() // HOUR, ranks)
            if lines:
                self.store.record(lines)
