"""The protocol by which long work reports how far it has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

QUIET_SECONDS = 10


class OutOfTime(Exception):
    """What a `Progress` raises to end the work: training goes back to its best epoch and returns,
    and what is of no use in part, such as a closed form, lets it through."""


class Progress(Protocol):
    """Called now and then with the stage, how much of it is done, and how much there is.

    `note` is what else is worth showing, such as a loss. A whole `done` ends a round: an epoch, a
    trial. Where nobody knows how much there is, `total` is none.
    """

    def __call__(
        self, stage: str, done: float, total: float | None = None, note: str = ""
    ) -> None: ...


def silent(stage: str, done: float, total: float | None = None, note: str = "") -> None:
    pass


@contextmanager
def show_progress(**labels: str) -> Iterator[Progress]:
    """A bar a stage on a terminal; elsewhere a line a round, or one every ten seconds.

    `labels` say what a stage is called here, such as training="updating".
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
        line = f"{self.labels.get(stage, stage)} {done:,.6g}{of}" + (f"  {note}" if note else "")
        print(line, file=sys.stderr)
