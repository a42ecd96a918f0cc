"""What several commands take."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

RunPath = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run directory.", show_default=False)
]
Column = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The name of its column. By default it is guessed."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
K = Annotated[int, typer.Option("--k", "-k", help="How many to list.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail if any id is unknown.")]
Ids = str | None
History = Annotated[
    Ids,
    typer.Option(
        "--history",
        metavar="ID,ID,...",
        help="For somebody new: the items that they have, the latest last.",
    ),
]


def split_ids(text: str) -> list[str]:
    """'A,B' -> ['A', 'B']; an id that holds a comma is written in double quotes."""
    return next(csv.reader([text], skipinitialspace=True), []) if text.strip() else []
