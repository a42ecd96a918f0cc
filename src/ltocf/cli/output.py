"""How results and progress look. Results go to standard output, the rest to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from ltocf.runs.training import EpochRecord, Progress

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


def metric_text(metrics: dict[str, float]) -> str:
    return f"Recall@20 {metrics['recall@20']:.4f}  NDCG@20 {metrics['ndcg@20']:.4f}"


@contextmanager
def training_progress(epochs: int, label: str = "training") -> Iterator[Progress]:
    """A live bar on a terminal; a line an evaluation elsewhere."""
    if not sys.stderr.isatty():
        yield LineProgress(epochs, label)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with bar:
        yield BarProgress(bar, epochs, label)


class BarProgress:
    def __init__(self, bar: Any, epochs: int, label: str) -> None:
        self.bar, self.epochs, self.label = bar, epochs, label
        self.task = bar.add_task(label, total=epochs, status="starting")
        self.accuracy = ""
        self.times = ""

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        self.bar.update(
            self.task,
            completed=epoch - 1 + done / total,
            description=f"{self.label} {epoch}/{self.epochs}",
            status=f"loss {loss:.4f}{self.accuracy}{self.times}",
        )

    def epoch(self, record: EpochRecord, best_epoch: int) -> None:
        if record.metrics:
            best = " (best)" if best_epoch == record.epoch else ""
            self.accuracy = f"  {metric_text(record.metrics)}{best}"
        if record.times:
            self.times = "  times " + " ".join(f"{t:.2f}" for t in record.times)


class LineProgress:
    def __init__(self, epochs: int, label: str) -> None:
        self.epochs, self.label = epochs, label

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        pass

    def epoch(self, record: EpochRecord, best_epoch: int) -> None:
        if record.metrics or record.epoch == self.epochs:
            accuracy = f"  {metric_text(record.metrics)}" if record.metrics else ""
            times = "".join(f" {t:.3f}" for t in record.times)
            say(
                f"{self.label} {record.epoch}/{self.epochs}  loss {record.loss:.4f}{accuracy}"
                + (f"  times{times}" if times else "")
            )


@contextmanager
def counting_progress(label: str) -> Iterator[Any]:
    """A callable (done, total) that shows a bar on a terminal and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def stage_progress() -> Iterator[Any]:
    """A callable (stage, done, total or None) that shows a bar a stage on a terminal."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        yield show
