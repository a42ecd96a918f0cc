"""A service while it runs: the model served now, the store of events, and the threads between.

Each kind of work has a queue and threads of its own, so that none waits for another: reading
histories, computing short lists, reasons and large requests, committing events, and everything
else. A monitor checks all the time whether the store works, so that no request has to find out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from sqlalchemy.exc import SQLAlchemyError

from ltocf.data.catalogue import ItemChange
from ltocf.recommend.people import Person
from ltocf.service.experiments.running import Experiment
from ltocf.service.lists import ListReply, ListRequest, written_lists
from ltocf.service.live_items import LiveItems
from ltocf.service.live_quality import Judge
from ltocf.service.popularity import Popularity
from ltocf.service.problems import Busy
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import Event, EventStore
from ltocf.service.store.impressions import Impression
from ltocf.service.store.items import change_items
from ltocf.service.store.monitor import StoreMonitor
from ltocf.service.work.batcher import Batcher, Late
from ltocf.service.work.slices import SliceQueue

T = TypeVar("T")
Commit = tuple[ServedModel, Sequence[Event]]
FADE_AFTER = 10.0
STORE_SECONDS = 2.0  # for which a list waits for the store: a stale list is better than none
TOGETHER = 32  # people of one request whose histories are read at a time


class _Histories(NamedTuple):
    after: int
    users: tuple[str, ...]


class _Read(NamedTuple):
    events: dict[str, list[Event]]
    shown: dict[str, dict[str, int]]  # per person and item: how often it was shown and not taken


class Engine:
    """A request takes `served` once and keeps it to its end, so that each answer comes from one
    model."""

    def __init__(
        self,
        served: ServedModel,
        store: EventStore,
        *,
        timeout_seconds: float = 10.0,
        fade_after: float = FADE_AFTER,
    ) -> None:
        served.warm_up()
        # An item's score is halved after it was shown so often and not taken.
        self.fade_after = fade_after
        self._anything_shown = False  # most services never report impressions, and skip the look
        self.items = LiveItems(store)
        self.items.refresh()
        self.served, self.store, self._seconds = served, store, timeout_seconds
        self.closed = threading.Event()
        self._short = 0  # changed only by the event loop
        self.run_problem: str | None = None  # why another version of the run is not served
        self.experiment: Experiment | None = None
        self.judge = Judge(store, self._judged)
        self.popularity = Popularity(store)
        self.monitor = StoreMonitor(store, also=self._follow)
        self.short_lists: Batcher[ListRequest, ListReply] = Batcher(
            written_lists, name="lists", seconds=timeout_seconds
        )
        self.reasons = SliceQueue("reasons", seconds=timeout_seconds, first=self._has_short_lists)
        self.large = SliceQueue("large", seconds=timeout_seconds, first=self._has_short_lists)
        self.commit: Batcher[Commit, list[Event]] = Batcher(
            self._guarded(self._commit, "writing"),
            name="commits",
            most=256,
            seconds=timeout_seconds,
        )
        self._histories: Batcher[_Histories, _Read] = Batcher(
            self._guarded(self._read_histories, "reading"),
            name="histories",
            seconds=min(STORE_SECONDS, timeout_seconds),
        )
        self._changes: Batcher[Callable[[], Any], Any] = Batcher(
            self._guarded(_each, "writing"), name="changes", most=1, seconds=timeout_seconds
        )
        self._questions: Batcher[Callable[[], Any], Any] = Batcher(
            self._guarded(_each, "reading"),
            name="questions",
            most=1,
            threads=2,
            seconds=timeout_seconds,
        )

    @property
    def served(self) -> ServedModel:
        """The model that answers now, beside the catalogue as it is now."""
        return self.items.beside(self._model)

    @served.setter
    def served(self, served: ServedModel) -> None:
        self._model = served

    def _follow(self) -> None:
        """Read what other processes have written since the last call."""
        self.items.refresh()
        self.popularity.count(self.served)
        self._anything_shown = self._anything_shown or bool(self.store.shown_qualities())

    async def change_items(self, changes: Sequence[ItemChange]) -> None:
        """Commit changes of items; the next list uses them. A Conflict if they do not fit the other
        items of the catalogue."""

        def change(wanted: Callable[[], bool]) -> None:
            check = partial(self.items.check, self._model)
            change_items(self.store, changes, wanted, check)
            self._follow()

        await self.write(change)

    async def ask(self, question: Callable[[], T]) -> T:
        """The result of a call that may take a while, made outside the event loop."""
        return cast(T, await self._questions(question))

    async def write(self, change: Callable[[Callable[[], bool]], T]) -> T:
        """The result of `change`, which is called with a function that says whether the request
        still waits for it."""
        deadline = time.monotonic() + self._seconds
        return cast(T, await self._changes(lambda: change(lambda: time.monotonic() < deadline)))

    def served_for(self, user: str) -> tuple[ServedModel, str | None]:
        """The model that answers this person, and their arm if there is an experiment."""
        experiment = self.experiment
        if experiment is None:
            return self.served, None
        model, arm = experiment.served_for(user, self._model)
        return self.items.beside(model), arm

    async def people(self, served: ServedModel, users: Sequence[str]) -> tuple[list[Person], bool]:
        """The people with their present histories: the data set and all events since. Also whether
        the histories are stale, because the store does not answer."""
        if self.monitor.reading:
            try:
                found: list[Person] = []
                # A few at a time, so that requests for one person do not wait long in between.
                for start in range(0, len(users), TOGETHER):
                    some = tuple(users[start : start + TOGETHER])
                    read = await self._histories(_Histories(served.trained, some))
                    found += [_person(served, user, read) for user in some]
                return found, False
            except Busy:
                pass
        return self._known_people(served, users), True

    async def short_list(
        self, served: ServedModel, user: str, request_of: Callable[[Person, bool], ListRequest]
    ) -> ListReply:
        """A short list for one user. `request_of` makes the request from the person with their
        present history, and whether that is stale."""
        if self.monitor.reading:

            def request(read: _Read) -> ListRequest:
                return request_of(_person(served, user, read), False)

            try:
                wanted = _Histories(served.trained, (user,))
                return await self._histories.then(wanted, self.short_lists, request)
            except Late:
                pass
        (person,) = self._known_people(served, [user])
        return await self.short_lists(request_of(person, True))

    def _known_people(self, served: ServedModel, users: Sequence[str]) -> list[Person]:
        """The people by the data set alone, without the store."""
        gone = set(self.store.forgotten_among(users, self.monitor.markers))
        return [
            served.person(user, [Event(user, None, 0)] if user in gone else []) for user in users
        ]

    def person_now(self, served: ServedModel, user: str) -> Person:
        """One person with their present history; for a thread that may wait for the store."""
        return served.person(user, self.store.of_users([user], after=served.trained).get(user, ()))

    def swap(self, served: ServedModel) -> None:
        """Use this model for new requests; those under way are still answered by the old one."""
        served.warm_up()
        self.items.beside(served)
        self.served = served

    def close(self) -> None:
        self.closed.set()
        self.monitor.close()
        queues = (self.short_lists, self.commit, self._histories, self._changes, self._questions)
        for queue in (*queues, self.reasons, self.large):
            queue.close()
        self.judge.close()
        if self.experiment is not None:
            self.experiment.close()

    @contextmanager
    def short(self) -> Iterator[None]:
        """While a short list is on its way: read, computed or written."""
        self._short += 1
        try:
            yield
        finally:
            self._short -= 1

    def _has_short_lists(self) -> bool:
        return self._short > 0

    def _commit(self, batch: Sequence[Commit]) -> list[list[Event] | Exception]:
        added = self.store.add([events for _, events in batch])
        for (served, _), events in zip(batch, added, strict=True):
            self._consider(served, events)
        return list(added)

    def _consider(self, served: ServedModel, events: Sequence[Event]) -> None:
        experiment = self.experiment
        if experiment is None:
            self.judge.consider(served, events)
            return
        experiment.happened(events)
        for event in events:
            for model in experiment.judges_of(event.user, served):
                self.judge.consider(model, [event])

    def _judged(self, served: ServedModel, events: Sequence[Event], ranks: Any) -> None:
        if self.experiment is not None:
            self.experiment.judged(served, events, ranks)

    async def count_shown(self, model: str, shown: Sequence[Impression]) -> None:
        """Commit what people were shown; the next list takes it into account."""
        await self.write(lambda wanted: self.store.shown(model, shown, wanted))
        self._anything_shown = True

    def _read_histories(self, batch: Sequence[_Histories]) -> list[_Read]:
        found = {
            after: self.store.of_users(
                list({user for one in batch if one.after == after for user in one.users}),
                after=after,
            )
            for after in {one.after for one in batch}
        }
        shown: dict[str, dict[str, int]] = {}
        if self.fade_after and self._anything_shown:
            shown = self.store.shown_in_vain(list({user for one in batch for user in one.users}))
        return [_Read(found[one.after], shown) for one in batch]

    def _guarded(
        self, work: Callable[[Sequence[Any]], Sequence[Any]], what: str
    ) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """The same call; if the store does not answer, it notifies the monitor and raises Busy."""

        def guarded(batch: Sequence[Any]) -> Sequence[Any]:
            try:
                found = work(batch)
            except SQLAlchemyError as failure:
                self.monitor.failed(what, failure)
                raise Busy("the event store does not answer; try again in a moment") from None
            if work is not _each:  # not every such call uses the store
                self.monitor.worked(what)
            return found

        return guarded


def _person(served: ServedModel, user: str, read: _Read) -> Person:
    person = served.person(user, read.events.get(user, ()))
    times = read.shown.get(user)
    return person._replace(shown=served.shown(times)) if times else person


def _each(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    return [call() for call in calls]
