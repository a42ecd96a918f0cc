"""ltocf explain"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.options import History, Ids, RunPath, split_ids
from ltocf.cli.output import Json, cells, print_json, print_table
from ltocf.errors import ConfigError


def explain(
    run: RunPath,
    item: Annotated[str, typer.Option("--item", "-i", metavar="ID")],
    user: Annotated[Ids, typer.Option("--user", "-u", metavar="ID")] = None,
    history: History = None,
    most: Annotated[int, typer.Option(min=1, help="Reasons to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Why a user's score of an item is what it is: exact terms that sum to the score."""
    from ltocf.recommend.recommender import Recommender

    if (user is None) == (history is None):
        raise ConfigError("say for whom: either --user ID or --history ID,ID,...")
    recommender = Recommender.load(run)
    why = (
        recommender.explain_new(split_ids(history), item)
        if history is not None
        else recommender.explain(str(user), item)
    )
    if as_json:
        terms = {"own": why.own, "because": why.because.to_dicts(), "sentence": why.sentence()}
        print_json({"user": why.user, "item": why.item, "score": why.score} | terms)
        return
    shown = why.because.head(most)
    rest = why.because["contribution"].slice(most).sum()
    print(f"{item}: {why.sentence()}")
    print_table("", shown.columns, cells(shown))
    print(f"{rest:+.4f} the other {why.because.height - shown.height} items of the history")
    print(f"{why.own:+.4f} the user's own vector\n{why.score:+.4f} score")
