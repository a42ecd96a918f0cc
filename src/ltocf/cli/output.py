"""How results and progress look. Results go to standard output, the rest to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from ltocf.progress import Progress

QUIET_SECONDS = 10

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str) -> None:
    print(text, file=sys.stderr)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # A file or another program has no edge to wrap at; and an id such as '[red]' is no markup.
    width = None if sys.stdout.isatty() else 240
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def cells(rows: pl.DataFrame) -> list[list[str]]:
    return [[f"{v:.4f}" if isinstance(v, float) else str(v) for v in row] for row in rows.rows()]


@contextmanager
def show_progress(**labels: str) -> Iterator[Progress]:
    """A bar a stage on a terminal; elsewhere a line a round, or one every ten seconds.

    `labels` say what a stage is called here, such as training="updating".
    """
    if not sys.stderr.isatty():
        yield Lines(labels)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
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
    """What a log file gets: short work leaves no line, long work is never silent."""

    def __init__(self, labels: dict[str, str]) -> None:
        self.labels, self.said_at = labels, time.monotonic()

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        whole_round = bool(note) and float(done).is_integer()
        if not whole_round and time.monotonic() - self.said_at < QUIET_SECONDS:
            return
        self.said_at = time.monotonic()
        of = "" if total is None else f"/{total:,.10g}"
        say(f"{self.labels.get(stage, stage)} {done:,.6g}{of}" + (f"  {note}" if note else ""))
