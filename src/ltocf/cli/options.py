"""What several commands take."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

RunPath = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run directory.", show_default=False)
]
Column = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The name of its column, or its number from 1. By default it is guessed.",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="How strong an interaction is: plays, a quantity or a rating."
    ),
]
Repeats = Annotated[
    str | None,
    typer.Option(
        metavar="sum|max",
        help="How the weights of a repeated pair become one. Without --weight each row weighs 1, "
        "so that sum counts the rows.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(help="What stands between columns, such as ';' or '::'. By default it is found."),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row names the columns. By default it is found out.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Such as utf-8, utf-16 or latin-1. By default it is found out."),
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad", help="Pass over rows that cannot be read, and count them, instead of failing."
    ),
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

Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        help="How many threads to compute with. By default, as many as there are cores that this "
        "process may use.",
        show_default=False,
    ),
]


def with_threads(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the option --threads, which holds for all that it computes."""

    @wraps(command)
    def run(*arguments: Any, threads: int | None, **options: Any) -> None:
        from ltocf.threads import use_threads

        use_threads(threads)
        command(*arguments, **options)

    own = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(
        "threads", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Threads
    )
    whole = own.replace(parameters=[*own.parameters.values(), option])
    run.__signature__ = whole  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in whole.parameters.items()}
    return run


def split_ids(text: str) -> list[str]:
    """'A,B' -> ['A', 'B']; an id that holds a comma is written in double quotes."""
    return next(csv.reader([text], skipinitialspace=True), []) if text.strip() else []
