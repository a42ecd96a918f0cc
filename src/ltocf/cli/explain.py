"""ltocf explain"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.options import History, Ids, RunPath, refuse_unknown, split_ids, the_only
from ltocf.cli.output import Json, cells, print_json, print_table
from ltocf.errors import ConfigError


def explain(
    run: RunPath,
    item: Annotated[Ids, typer.Option("--item", "-i", metavar="ID", help="The item.")] = None,
    user: Annotated[Ids, typer.Option("--user", "-u", metavar="ID", help="The user.")] = None,
    history: History = None,
    most: Annotated[int, typer.Option(min=1, help="How many reasons to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Explain a user's score of an item by exact terms that sum to the score."""
    what, who = the_only(item, "--item"), the_only(user, "--user")
    if what is None:
        raise ConfigError("say what to explain: --item ID")
    if (user is None) == (history is None):
        raise ConfigError("say for whom: either --user ID or --history ID,ID,...")
    has = the_only(history, "--history")
    refuse_unknown(run, users=user, items=item)

    from ltocf.recommend.recommender import Recommender

    recommender = Recommender.load(run)
    why = (
        recommender.explain(str(who), what)
        if has is None
        else recommender.explain_new(split_ids([has]), what)
    )
    if as_json:
        terms = {"own": why.own, "popularity": why.popularity, "because": why.because.to_dicts()}
        said = {"user": why.user, "item": why.item, "score": why.score}
        print_json(said | terms | {"sentence": why.sentence()})
        return
    shown = why.because.head(most)
    rest = why.because["contribution"].slice(most).sum()
    print(f"{why.item}: {why.sentence()}")
    print_table("", shown.columns, cells(shown))
    if others := why.because.height - shown.height:
        print(f"{rest:+.4f} the other {others} items of the history")
    if why.popularity:
        print(f"{why.popularity:+.4f} popular with everybody")
    print(f"{why.own:+.4f} the user's own vector\n{why.score:+.4f} score")
