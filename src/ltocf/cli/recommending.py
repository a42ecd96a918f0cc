"""ltocf recommend"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json, print_table
from ltocf.cli.training import RunPath


def recommend(
    run: RunPath,
    user: Annotated[list[str], typer.Option("--user", "-u", help="A user id; repeat for more.")],
    k: Annotated[int, typer.Option("--k", "-k", help="How many.")] = 10,
    keep_seen: Annotated[
        bool, typer.Option("--keep-seen", help="Also what he already has.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The best items for users of the training data."""
    from ltocf.recommend import Recommender

    found = Recommender.load(run).recommend(user, k, keep_seen=keep_seen)
    if as_json:
        print_json(found.to_dicts())
        return
    for name in user:
        rows = found.filter(found["user"] == name).drop("user")
        cells = [
            [f"{v:.4f}" if isinstance(v, float) else str(v) for v in row] for row in rows.rows()
        ]
        print_table(f"for {name}", rows.columns, cells)
