"""ltocf similar"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.options import Ids, K, RunPath, refuse_unknown
from ltocf.cli.output import Json, cells, print_json, print_table
from ltocf.errors import ConfigError


def similar(
    run: RunPath,
    item: Annotated[
        Ids, typer.Option("--item", "-i", metavar="ID", help="An item; repeat for more.")
    ] = None,
    user: Annotated[
        Ids, typer.Option("--user", "-u", metavar="ID", help="A user; repeat for more.")
    ] = None,
    k: K = 10,
    as_json: Json = False,
) -> None:
    """List the items most like an item, or the users most like a user."""
    if (item is None) == (user is None):
        raise ConfigError("say what to compare with: either --item ID or --user ID")
    refuse_unknown(run, strict=True, users=user, items=item)

    from ltocf.recommend.recommender import Recommender

    recommender = Recommender.load(run)
    if item is not None:
        kind, found = "item", recommender.similar_items(item, k)
    else:
        kind, found = "user", recommender.similar_users(user or [], k)
    if as_json:
        print_json(found.to_dicts())
        return
    for (name,), rows in found.group_by(kind, maintain_order=True):
        shown = rows.drop(kind)
        print_table(f"like {name}", shown.columns, cells(shown))
