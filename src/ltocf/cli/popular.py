"""ltocf popular"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.options import K, Where
from ltocf.cli.output import Json, cells, print_json, print_table
from ltocf.errors import ConfigError


def popular(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run or a data set.", show_default=False)
    ],
    trending: Annotated[
        bool,
        typer.Option("--trending", help="List items that are clearly touched more than before."),
    ] = False,
    new: Annotated[bool, typer.Option("--new", help="List the items that arrived last.")] = False,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="30d|12h",
            help="How far to look back from the latest interaction. By default a week for "
            "--trending, and everything otherwise.",
        ),
    ] = None,
    where: Where = None,
    k: K = 10,
    as_json: Json = False,
) -> None:
    """List the items that are popular, trending or new, the same for everybody."""
    if trending and new:
        raise ConfigError("give either --trending or --new, not both")

    from ltocf.data.dataset import Dataset
    from ltocf.recommend.boards import board, parse_window
    from ltocf.recommend.rules import Rules
    from ltocf.runs.versions import current_path

    kind = "trending" if trending else "new" if new else "popular"
    span = None if window is None else parse_window(window)
    rules = Rules.parse(where or ())
    inside = current_path(run) / "data"
    dataset = Dataset.load(inside if inside.is_dir() else run)
    found = board(dataset, kind, k, window=span, rules=rules)
    if as_json:
        print_json(found.to_dicts())
    elif found.is_empty():
        print(f"nothing is {kind}")
    else:
        print_table(kind, found.columns, cells(found))
