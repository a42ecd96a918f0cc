"""ltocf recommend"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltocf.cli.options import History, Ids, K, RunPath, Strict, split_ids
from ltocf.cli.output import Json, cells, print_json, print_table, say, show_progress
from ltocf.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from ltocf.recommend.recommender import Recommender


def recommend(
    run: RunPath,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", "-u", metavar="ID", help="A user; repeat for more."),
    ] = None,
    history: History = None,
    k: K = 10,
    keep_seen: Annotated[
        bool, typer.Option("--keep-seen", help="Also list what they already have.")
    ] = False,
    candidates: Annotated[
        Ids, typer.Option(metavar="ID,ID,...", help="The only items to choose from.")
    ] = None,
    exclude: Annotated[
        Ids, typer.Option(metavar="ID,ID,...", help="Items that are never chosen.")
    ] = None,
    gradient_steps: Annotated[
        int, typer.Option(min=0, help="With --history: gradient steps on their own vector.")
    ] = 0,
    strict: Strict = False,
    all_users: Annotated[
        bool, typer.Option("--all-users", help="Everybody, into the file of --output.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="With --all-users: .parquet or .csv."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old file.")] = False,
    as_json: Json = False,
) -> None:
    """The best items for known users, for anybody by what they have, or for everybody."""
    from ltocf.recommend.recommender import Recommender

    if (user is not None) + (history is not None) + all_users != 1:
        raise ConfigError("say for whom: either --user ID, --history ID,ID,... or --all-users")
    if all_users != (output is not None):
        raise ConfigError("--all-users and --output FILE go together")
    recommender = Recommender.load(run)
    choice: dict[str, Any] = {
        "keep_seen": keep_seen,
        "candidates": None if candidates is None else split_ids(candidates),
        "exclude": split_ids(exclude or ""),
    }
    if output is not None:
        _recommend_all(recommender, output, k, choice | {"overwrite": overwrite}, as_json)
        return
    choice["strict"] = strict
    if history is not None:
        has = split_ids(history)
        found = recommender.recommend_new(
            {"new user": has}, k, gradient_steps=gradient_steps, **choice
        )
        unknown = {"unknown_items": recommender.unknown_items(has)}
    else:
        found = recommender.recommend(user or [], k, **choice)
        unknown = {"unknown_users": recommender.unknown_users(user or [])}
    if as_json:
        print_json({"recommendations": found.to_dicts()} | unknown)
        return
    _print_lists(found)
    for kind, ids in unknown.items():
        if ids:
            say(f"{kind.replace('_', ' ')}, passed over: {', '.join(map(str, ids))}")


def _recommend_all(
    recommender: Recommender, output: Path, k: int, choice: dict[str, Any], as_json: bool
) -> None:
    from dataclasses import asdict

    from ltocf.recommend.bulk import recommend_all

    with show_progress() as progress:
        report = recommend_all(recommender, output, k, **choice, progress=progress)
    if as_json:
        print_json(asdict(report))
    else:
        again = f" ({report.resumed:,} were there already)" if report.resumed else ""
        print(f"{report.rows:,} rows for {report.users:,} users{again} in {output}")


def _print_lists(found: pl.DataFrame) -> None:
    if found.is_empty():
        print("nothing is left to recommend")
    for (name,), rows in found.group_by("user", maintain_order=True):
        note = " (no history: what is popular)" if rows["source"][0] == "popularity" else ""
        shown = rows.drop("user", "source")
        print_table(f"for {name}{note}", shown.columns, cells(shown))
