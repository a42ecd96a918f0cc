"""ltocf similar"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.options import Ids, K, RunPath, Where, refuse_unknown
from ltocf.cli.output import Json, cells, print_json, print_table
from ltocf.cli.rule_options import (
    AlikeBy,
    AtMost,
    Boosts,
    Diversity,
    ExcludeFile,
    Pins,
    read_rules,
)
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
    where: Where = None,
    exclude_file: ExcludeFile = None,
    boost: Boosts = None,
    at_most: AtMost = None,
    pin: Pins = None,
    diversity: Diversity = 0.0,
    alike_by: AlikeBy = "attributes",
    as_json: Json = False,
) -> None:
    """List the items most like an item, or the users most like a user."""
    if (item is None) == (user is None):
        raise ConfigError("say what to compare with: either --item ID or --user ID")
    rules = read_rules(where, exclude_file, boost, at_most, pin, diversity, alike_by)
    refuse_unknown(run, strict=True, users=user, items=item)

    from ltocf.recommend.recommender import Recommender

    recommender = Recommender.load(run)
    if item is not None:
        kind, found = "item", recommender.similar_items(item, k, rules=rules)
    else:
        kind, found = "user", recommender.similar_users(user or [], k)
    if as_json:
        print_json(found.to_dicts())
        return
    for (name,), rows in found.group_by(kind, maintain_order=True):
        shown = rows.drop(kind)
        print_table(f"similar to {name}", shown.columns, cells(shown))
