"""How results and progress look. Results go to standard output, the rest to standard error."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def print_json(value: Any) -> None:
    # JSON has no type for times, which items can have as attributes.
    print(json.dumps(value, ensure_ascii=False, indent=2, default=lambda time: time.isoformat()))


def say(text: str) -> None:
    print(text, file=sys.stderr)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    numeric = [all(_is_number(row[index]) for row in rows) for index in range(len(columns))]
    # Output to a file or another program is not wrapped at the width of a terminal.
    edge = get_terminal_size().columns if sys.stdout.isatty() else 240
    widths = [max(map(len, texts)) for texts in zip(columns, *rows, strict=True)]
    texts = [title, *columns, *(text for row in rows for text in row)]
    fits = sum(widths) + 2 * (len(widths) - 1) <= edge and len(title) <= edge
    if not fits or not all(map(_is_plain, texts)):
        _print_wrapped(title, columns, rows, numeric)
        return

    def line(texts: Sequence[str]) -> str:
        cells = zip(texts, widths, numeric, strict=True)
        return "  ".join(f"{text:{'>' if right else '<'}{width}}" for text, width, right in cells)

    print(title)
    print(typer.style(line(columns), bold=True) if sys.stdout.isatty() else line(columns))
    for row in rows:
        print(line(row).rstrip())


def _print_wrapped(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]
) -> None:
    """The same, but cells wrap to fit and characters may have any width. rich does that, which
    takes longer to load than a typical list takes to compute; so it is used only where needed."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column, right in zip(columns, numeric, strict=True):
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 240
    # Without markup: an id such as '[red]' must be printed as it is.
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def print_beyond(title: str, runs: Sequence[str], metrics: Sequence[dict[str, float]]) -> None:
    """A row for each run and length of lists: coverage, novelty and what else accuracy does not
    tell."""
    ks = list(dict.fromkeys(name.partition("@")[2] for name in metrics[0]))
    names = list(dict.fromkeys(name.partition("@")[0] for name in metrics[0]))
    rows = [
        [run, k, *(f"{values[f'{name}@{k}']:.4f}" for name in names)]
        for run, values in zip(runs, metrics, strict=True)
        for k in ks
    ]
    print_table(title, ["run", "k", *names], rows)


def _is_plain(text: str) -> bool:
    """Whether each character takes one place: é does, 茶 takes two, a bare accent none."""
    if text.isascii():
        return text.isprintable()
    return text.isprintable() and not any(
        unicodedata.east_asian_width(sign) in "WF" or unicodedata.category(sign).startswith("M")
        for sign in text
    )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def cells(rows: pl.DataFrame) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in rows.rows()]


def _cell(value: Any) -> str:
    """A value as text: scores with four digits, tags as they were written, nothing for null."""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list):
        return "|".join(value)
    return "" if value is None else str(value)
