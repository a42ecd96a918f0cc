"""An experiment while it runs: which version makes whose list, and what people then took."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.exc import SQLAlchemyError

from ltocf.service.experiments.arms import Arm, Split
from ltocf.service.experiments.ledger import (
    Exposure,
    close_windows,
    log_events,
    log_exposures,
    log_hits,
)
from ltocf.service.live_quality import HIT
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore
from ltocf.service.store.tables import Event, now

log = logging.getLogger("ltocf.service")
WINDOW = 86_400_000_000  # microseconds after a person's first list in which taking an item counts
SHOWN = 20  # items of a first list that are remembered
REMEMBERED = 100_000  # people whose exposure was written by this process and need not be again
WAIT_SECONDS, CLOSE_SECONDS = 0.5, 60.0
SHADOW = "shadow"


class Experiment:
    """Arms by version, or one *shadow* version: it is judged on the same events as the version in
    use, but its lists are not shown.

    `models` are the versions beside the one in use, by the word or number of their arm. A thread of
    its own writes the records, so that no list and no event waits for them.
    """

    def __init__(
        self,
        store: EventStore,
        models: Mapping[str, ServedModel],
        *,
        split: Split | None = None,
        shadow: str | None = None,
        window: int = WINDOW,
    ) -> None:
        self.store, self.models, self.split, self.shadow = store, dict(models), split, shadow
        self.window = window
        self.name = _name(split, shadow, models)
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._closed_at = 0.0
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._run, name="experiment", daemon=True)
        self._thread.start()

    def arm_of(self, user: str) -> Arm | None:
        return None if self.split is None else self.split.arm_of(user)

    def served_for(self, user: str, current: ServedModel) -> tuple[ServedModel, str | None]:
        """The model that answers a person, and the name of their arm."""
        arm = self.arm_of(user)
        if arm is None:
            return current, None
        return self.models.get(arm.version, current), arm.name

    def judges_of(self, user: str, current: ServedModel) -> list[ServedModel]:
        """The models whose lists are judged by an event of this person."""
        shadow = None if self.shadow is None else self.models.get(self.shadow)
        return [self.served_for(user, current)[0], *([] if shadow is None else [shadow])]

    def expose(self, user: str, arm: str | None, items: Sequence[str]) -> None:
        """Note that a person was given a list."""
        if user in self._seen:
            return
        self._seen[user] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        one = Exposure(user, arm or SHADOW, now(), items[:SHOWN])
        self._later(lambda: log_exposures(self.store, self.name, [one]))

    def happened(self, events: Sequence[Event]) -> None:
        """Note committed events. They count as having arrived now, whatever their own time is."""
        moment = now()
        taken = [(event.user, event.item, moment) for event in events if event.item is not None]
        self._later(lambda: log_events(self.store, self.name, taken, self.window))

    def judged(
        self, served: ServedModel, events: Sequence[Event], ranks: NDArray[np.int64]
    ) -> None:
        """Note the ranks that events had by one of the models; a rank of 0 stands for none."""
        hits: dict[tuple[str, str], bool] = {}
        in_shadow = self.shadow is not None and served is self.models.get(self.shadow)
        for event, rank in zip(events, ranks, strict=True):
            arm = self.arm_of(event.user)
            if rank > 0:
                hits.setdefault((event.user, arm.name if arm else SHADOW), bool(rank <= HIT))
        column = "shadow_hit" if in_shadow else "hit"
        self._later(lambda: log_hits(self.store, self.name, column, hits))

    def forget(self, user: str) -> None:
        self._seen.pop(user, None)

    def wait(self, seconds: float) -> bool:
        """Wait until everything noted so far is written."""
        return self._idle.wait(seconds)

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()

    def _later(self, work: Callable[[], None]) -> None:
        self._idle.clear()
        self._waiting.put(work)

    def _run(self) -> None:
        while True:
            try:
                work: Any = self._waiting.get(timeout=CLOSE_SECONDS)
            except queue.Empty:
                work = self._close_windows
            if work is None:
                return
            try:
                work()
                if time.monotonic() - self._closed_at > CLOSE_SECONDS:
                    self._close_windows()
            except SQLAlchemyError as error:
                log.warning(f"an experiment's record was not written: {type(error).__name__}")
                time.sleep(WAIT_SECONDS)
            if self._waiting.empty():
                self._idle.set()

    @property
    def closed_before(self) -> int:
        """Whoever got their first list before this moment has had their time to take something."""
        return now() - self.window

    def _close_windows(self) -> None:
        self._closed_at = time.monotonic()
        close_windows(self.store, self.name, self.closed_before)


def _name(split: Split | None, shadow: str | None, models: Mapping[str, ServedModel]) -> str:
    """The name that identifies an experiment: its versions, but not the shares, which may
    change."""
    arms = {SHADOW: shadow} if split is None else {arm.name: arm.version for arm in split.arms}
    numbers = {word: served.version for word, served in models.items()}
    return ",".join(f"{name}={numbers.get(str(word), word)}" for name, word in arms.items())
