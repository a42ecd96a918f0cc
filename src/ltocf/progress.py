"""The protocol by which long work reports its progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

QUIET_SECONDS = 10


class OutOfTime(Exception):
    """Raised by a `Progress` to end the work. Training catches it and returns its best epoch. Work
    that is useless when incomplete, such as a closed form, lets it pass."""


class Progress(Protocol):
    """Called now and then with the stage, how much of it is done, and the total.

    `note` is anything else worth showing, such as a loss. An integer `done` ends a round, such as
    an epoch or a trial. `total` is None if it is unknown.
    """

    def __call__(
        self, stage: str, done: float, total: float | None = None, note: str = ""
    ) -> None: ...


def silent(stage: str, done: float, total: float | None = None, note: str = "") -> None:
    pass


@contextmanager
def show_progress(**labels: str) -> Iterator[Progress]:
    """On a terminal, one bar per stage; elsewhere, a line per round, or one every ten seconds.

    `labels` rename stages, such as training="updating".
    """
    if not sys.stderr.isatty():
        yield Lines(labels)
        return
    from rich import progress as rich_progress
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    bar = rich_progress.Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[note]}", markup=False),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with bar:
        yield Bars(bar, labels)


class Bars:
    def __init__(self, bar: Any, labels: dict[str, str]) -> None:
        self.bar, self.labels = bar, labels
        self.tasks: dict[str, Any] = {}

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        label = self.labels.get(stage, stage)
        if stage not in self.tasks:
            self.tasks[stage] = self.bar.add_task(label, total=total, note="")
        shown = {"note": note} if note else {}
        self.bar.update(self.tasks[stage], completed=done, total=total, **shown)


class Lines:
    """Progress as lines of a log: none for short work, one every ten seconds for long work."""

    def __init__(self, labels: dict[str, str]) -> None:
        self.labels, self.said_at = labels, time.monotonic()

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        whole_round = bool(note) and float(done).is_integer()
        if not whole_round and time.monotonic() - self.said_at < QUIET_SECONDS:
            return
        self.said_at = time.monotonic()
        of = "" if total is None else f"/{total:,.10g}"
        shown = f"{done:,.10g}" if float(done).is_integer() else f"{done:,.1f}"
        line = f"{self.labels.get(stage, stage)} {shown}{of}" + (f"  {note}" if note else "")
        print(line, file=sys.stderr)
