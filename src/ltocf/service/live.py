"""A service while it runs: the model served now, the store of events, and the threads between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from sqlalchemy.exc import SQLAlchemyError

from ltocf.service.batching import Batcher
from ltocf.service.events import Event, EventStore
from ltocf.service.judge import Judge
from ltocf.service.lists import Answer, Lists, Wanted
from ltocf.service.problems import Busy
from ltocf.service.served import Served

T = TypeVar("T")
Commit = tuple[Served, Sequence[Event]]


class Live:
    """Requests take `served` once and keep it to their end, so an answer is by one model."""

    def __init__(self, served: Served, store: EventStore, *, timeout_seconds: float = 10.0) -> None:
        served.warm_up()
        self.served, self.store = served, store
        self.closed = threading.Event()
        self._lists = Lists(store)
        self.judge = Judge(store)
        self.list_for: Batcher[Wanted, Answer] = Batcher(
            _guarded(self._lists), name="lists", seconds=timeout_seconds
        )
        self.commit: Batcher[Commit, list[Event]] = Batcher(
            _guarded(self._commit), name="commits", most=256, seconds=timeout_seconds
        )
        self._questions: Batcher[Callable[[], Any], Any] = Batcher(
            _each, name="questions", most=1, seconds=timeout_seconds
        )

    async def ask(self, question: Callable[[], T]) -> T:
        """What a call returns that may take a while; it is not made on the event loop."""
        return cast(T, await self._questions(question))

    def person_now(self, served: Served, user: str) -> Any:
        return self._lists.people(served, [user])[0]

    def swap(self, served: Served) -> None:
        """From now on this model answers; requests on their way are answered by the old one."""
        served.warm_up()
        self.served = served

    def close(self) -> None:
        self.closed.set()
        for thread in (self.list_for, self.commit, self._questions):
            thread.close()
        self.judge.close()

    def _commit(self, batch: Sequence[Commit]) -> list[list[Event] | Exception]:
        added = self.store.add([events for _, events in batch])
        for (served, _), events in zip(batch, added, strict=True):
            self.judge.consider(served, events)
        return list(added)


def _each(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    return [_guarded(lambda one: [one[0]()])([call])[0] for call in calls]


def _guarded(work: Callable[[Sequence[Any]], Sequence[Any]]) -> Callable[[Sequence[Any]], Any]:
    """The same, with Busy if the store does not answer."""

    def guarded(batch: Sequence[Any]) -> Sequence[Any]:
        try:
            return work(batch)
        except SQLAlchemyError:
            raise Busy("the event store does not answer; try again in a moment") from None

    return guarded
