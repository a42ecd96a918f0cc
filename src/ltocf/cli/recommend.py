"""ltocf recommend"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltocf.cli.options import History, Ids, K, RunPath, Strict, Where, refuse_unknown, split_ids
from ltocf.cli.output import Json, cells, print_json, print_table, say
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
from ltocf.progress import show_progress

if TYPE_CHECKING:
    import polars as pl

    from ltocf.recommend.recommender import Recommender


def recommend(
    run: RunPath,
    user: Annotated[
        Ids, typer.Option("--user", "-u", metavar="ID", help="A user; repeat for more.")
    ] = None,
    history: History = None,
    k: K = 10,
    keep_seen: Annotated[
        bool, typer.Option("--keep-seen", help="Also list items that the person already has.")
    ] = False,
    candidates: Annotated[
        Ids, typer.Option(metavar="ID,ID,...", help="The only items to choose from.")
    ] = None,
    exclude: Annotated[Ids, typer.Option(metavar="ID,ID,...", help="Items to leave out.")] = None,
    where: Where = None,
    exclude_file: ExcludeFile = None,
    boost: Boosts = None,
    at_most: AtMost = None,
    pin: Pins = None,
    diversity: Diversity = 0.0,
    alike_by: AlikeBy = "attributes",
    gradient_steps: Annotated[
        int,
        typer.Option(
            min=0,
            help="With --history, for a model with a vector per user: how many gradient steps to "
            "take to find the new person's vector.",
        ),
    ] = 0,
    strict: Strict = False,
    all_users: Annotated[
        bool, typer.Option("--all-users", help="Write the list of every user to --output FILE.")
    ] = False,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="With --all-users: look for candidates by rounded scores and rank those exactly, "
            "which is faster among very many items, and say how much of the exact lists was found.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the lists to a .parquet or .csv file."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing file.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the best items for known users, for new people from their items, or for every user."""
    if (user is not None) + (history is not None) + all_users != 1:
        raise ConfigError("say for whom: either --user ID, --history ID,ID,... or --all-users")
    if approximate and not all_users:
        raise ConfigError("--approximate goes with --all-users; other lists are exact")
    if all_users and output is None:
        raise ConfigError("--all-users needs a file: --output FILE")
    if output is not None:
        from ltocf.recommend.ids import TABLES
        from ltocf.storage.files import refuse_file

        refuse_file(output, overwrite=overwrite, kinds=TABLES)
    rules = read_rules(where, exclude_file, boost, at_most, pin, diversity, alike_by)
    refuse_unknown(run, strict, users=user)

    from ltocf.recommend.recommender import Recommender
    from ltocf.recommend.tables import write_table

    recommender = Recommender.load(run)
    choice: dict[str, Any] = {
        "keep_seen": keep_seen,
        "candidates": None if candidates is None else split_ids(candidates),
        "exclude": split_ids(exclude or []),
        "rules": rules,
    }
    if all_users:
        assert output is not None
        choice |= {"overwrite": overwrite, "approximate": approximate}
        _recommend_all(recommender, output, k, choice, as_json)
        return
    choice["strict"] = strict
    if history is not None:
        found, unknown = _recommend_new(recommender, history, k, choice, gradient_steps)
    else:
        found = recommender.recommend(user or [], k, **choice)
        unknown = {"unknown_users": recommender.unknown_users(user or [])}
    if output is not None:
        write_table(found, output)
        done = {"output": str(output), "users": found["user"].n_unique(), "rows": found.height}
        print_json(done | unknown) if as_json else print(
            f"{done['rows']:,} rows for {done['users']:,} users in {output}"
        )
    elif as_json:
        print_json({"recommendations": found.to_dicts()} | unknown)
    else:
        _print_lists(found)
    for kind, ids in unknown.items():
        if ids and not as_json:
            say(f"{kind.replace('_', ' ')}, ignored: {', '.join(map(str, ids))}")


def _recommend_new(
    recommender: Recommender, texts: list[str], k: int, choice: dict[str, Any], steps: int
) -> tuple[pl.DataFrame, dict[str, Any]]:
    histories = [split_ids([text]) for text in texts]
    unknown = {"unknown_items": recommender.unknown_items(i for has in histories for i in has)}
    if len(histories) > 1:
        named: dict[Any, list[str]] = {f"new user {n}": has for n, has in enumerate(histories, 1)}
        return recommender.recommend_new(named, k, gradient_steps=steps, **choice), unknown
    found = recommender.recommend_new(histories[0], k, gradient_steps=steps, **choice)
    import polars as pl

    return found.insert_column(0, pl.lit("new user").alias("user")), unknown


def _recommend_all(
    recommender: Recommender, output: Path, k: int, choice: dict[str, Any], as_json: bool
) -> None:
    from dataclasses import asdict

    from ltocf.recommend.bulk import recommend_all

    try:
        with show_progress() as progress:
            report = recommend_all(recommender, output, k, **choice, progress=progress)
    except KeyboardInterrupt:
        say(
            f"\nstopped; finished lists are kept in {output}.parts. "
            "Run the same command to continue"
        )
        raise typer.Exit(130) from None
    if as_json:
        print_json(asdict(report))
    else:
        again = f" ({report.resumed:,} were there already)" if report.resumed else ""
        print(f"{report.rows:,} rows for {report.users:,} users{again} in {output}")
        if report.recall is not None:
            print(
                f"approximate: {report.recall:.2%} of the items of exact lists, measured on "
                f"{report.recall_users:,} users"
            )


def _print_lists(found: pl.DataFrame) -> None:
    if found.is_empty():
        print("nothing is left to recommend")
    for (name,), rows in found.group_by("user", maintain_order=True):
        note = " (no history: what is popular)" if rows["source"][0] == "popularity" else ""
        shown = rows.drop("user", "source")
        print_table(f"for {name}{note}", shown.columns, cells(shown))
