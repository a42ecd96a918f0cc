"""ltocf similar"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.options import Ids, K, RunPath
from ltocf.cli.output import Json, cells, print_json, print_table
from ltocf.errors import ConfigError


def similar(
    run: RunPath,
    item: Annotated[Ids, typer.Option("--item", "-i", metavar="ID")] = None,
    user: Annotated[Ids, typer.Option("--user", "-u", metavar="ID")] = None,
    k: K = 10,
    as_json: Json = False,
) -> None:
    """The items most like an item, or the users most like a user."""
    from ltocf.recommend.recommender import Recommender

    if (item is None) == (user is None):
        raise ConfigError("say what to compare with: either --item ID or --user ID")
    recommender = Recommender.load(run)
    if item is not None:
        found = recommender.similar_items(item, k).drop("item")
    else:
        found = recommender.similar_users(str(user), k).drop("user")
    if as_json:
        print_json(found.to_dicts())
    else:
        print_table(f"like {item if user is None else user}", found.columns, cells(found))
