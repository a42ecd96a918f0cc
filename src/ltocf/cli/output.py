"""How results and progress look. Results go to standard output, the rest to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def print_json(value: Any) -> None:
    # What JSON has no form for is a moment: an attribute of an item.
    print(json.dumps(value, ensure_ascii=False, indent=2, default=lambda time: time.isoformat()))


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


def print_beyond(title: str, runs: Sequence[str], metrics: Sequence[dict[str, float]]) -> None:
    """A row for each run and length of lists: what accuracy does not say."""
    ks = list(dict.fromkeys(name.partition("@")[2] for name in metrics[0]))
    names = list(dict.fromkeys(name.partition("@")[0] for name in metrics[0]))
    rows = [
        [run, k, *(f"{values[f'{name}@{k}']:.4f}" for name in names)]
        for run, values in zip(runs, metrics, strict=True)
        for k in ks
    ]
    print_table(title, ["run", "k", *names], rows)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def cells(rows: pl.DataFrame) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in rows.rows()]


def _cell(value: Any) -> str:
    """Scores by four digits, tags as they were written, and nothing for what is not known."""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list):
        return "|".join(value)
    return "" if value is None else str(value)
