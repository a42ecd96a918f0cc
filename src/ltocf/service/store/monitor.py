"""Checks all the time whether the store answers, so that nobody has to wait to find out."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from ltocf.service.problems import Busy
from ltocf.service.store.events import EventStore, Quality

log = logging.getLogger("ltocf.service")
LOOK_SECONDS = 1.0
SILENT_SECONDS = 5.0  # without an answer for so long, the store counts as failed
END_SECONDS = 5.0
WRITE_SECONDS = 10.0  # between two attempts to write, if nobody else writes


class StoreMonitor:
    """The last known state of a store. `reading` and `writing` say whether it works now."""

    def __init__(self, store: EventStore, also: Callable[[], None] = lambda: None) -> None:
        self.store, self._also = store, also
        self.last = 0
        self.qualities: list[Quality] = []
        self.markers: frozenset[str] = frozenset()  # of all people who were forgotten
        self._seen = 0  # number of the last event that was read for markers
        self._problems: dict[str, str] = {}  # of reading and of writing
        self._since: dict[str, float] = {}
        self._read_at = self._wrote_at = time.monotonic()
        self._ended = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._run, name="store monitor", daemon=True)
        self._thread.start()

    @property
    def reading(self) -> bool:
        silent = time.monotonic() - self._read_at > SILENT_SECONDS
        return "reading" not in self._problems and not silent

    @property
    def writing(self) -> bool:
        return self.reading and "writing" not in self._problems

    def problem(self) -> str | None:
        """What is wrong, in one line."""
        if self._problems:
            return next(iter(self._problems.values()))
        return None if self.reading else "the store of events does not answer"

    def worked(self, what: str) -> None:
        """To be called after a successful read or write."""
        moment = time.monotonic()
        if what == "reading":
            self._read_at = moment
        else:
            self._wrote_at = moment
        if self._problems.pop(what, None) is not None:
            seconds = moment - self._since.pop(what, moment)
            log.warning(f"event store: {what} works again, after {seconds:.0f} seconds")

    def failed(self, what: str, failure: Exception) -> None:
        """To be called after a failed one. An outage is logged when it begins and when it ends."""
        reason = str(getattr(failure, "orig", None) or failure).strip().splitlines()
        line = reason[0] if reason else type(failure).__name__
        if what not in self._problems:
            self._since[what] = time.monotonic()
            log.warning(f"event store: {what} fails: {line}")
        self._problems[what] = f"{what} the store of events fails: {line}"

    def close(self) -> None:
        """Wait for a check that is under way, since it holds a connection that would stay open when
        the store is closed. The wait is limited, so that a check that hangs does not keep the
        service from ending."""
        self._ended.set()
        self._thread.join(END_SECONDS)

    def _run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        try:
            self.last = self.store.last()
            if self.last > self._seen:
                self.markers |= self.store.forgotten(self._seen)
                self._seen = self.last
            self.qualities = self.store.qualities()
            self._also()
        except (SQLAlchemyError, OSError) as failure:
            self.failed("reading", failure)
            return
        except Exception as failure:  # an unexpected error must not stop the monitoring
            log.warning(f"event store: unexpected: {failure!r}")
            return
        self.worked("reading")
        self._try_to_write()

    def _try_to_write(self) -> None:
        well = "writing" not in self._problems
        if well and self.store.present() and time.monotonic() - self._wrote_at < WRITE_SECONDS:
            return
        try:
            self.store.try_to_write()
        except (SQLAlchemyError, OSError, Busy) as failure:
            self.failed("writing", failure)
        else:
            self.worked("writing")
