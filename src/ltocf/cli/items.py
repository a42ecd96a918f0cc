"""ltocf items"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltocf.cli.options import K, Where
from ltocf.cli.output import Json, cells, print_json, print_table

if TYPE_CHECKING:
    import polars as pl

    from ltocf.data.dataset import Dataset


def items(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run or a data set.", show_default=False)
    ],
    search: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="List the items whose name or id contains this."),
    ] = None,
    where: Where = None,
    count: Annotated[
        str | None,
        typer.Option(metavar="ATTRIBUTE", help="Count the items of each value of an attribute."),
    ] = None,
    k: K = 20,
    as_json: Json = False,
) -> None:
    """Summarise the attributes of all items, or list the items that match."""
    from ltocf.data.dataset import Dataset
    from ltocf.recommend.items import count_values, describe, find_items
    from ltocf.runs.versions import current_path

    inside = current_path(run) / "data"
    dataset = Dataset.load(inside if inside.is_dir() else run)
    if count is not None:
        _show(f"items by {count}", count_values(dataset, count, where or ()), k, as_json)
    elif search is not None or where:
        _show("items", find_items(dataset, search, where or ()), k, as_json)
    else:
        _describe(dataset, describe(dataset), as_json)


def _show(title: str, table: pl.DataFrame, k: int, as_json: bool) -> None:
    if as_json:
        print_json({"total": table.height, "items": table.head(k).to_dicts()})
        return
    if not table.height:
        print("no item matches")
        return
    print_table(title, table.columns, cells(table.head(k)))
    if table.height > k:
        print(f"{table.height - k:,} more; list them with -k {table.height}")


def _describe(dataset: Dataset, facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    print(
        f"{facts['items']:,} items, {facts['untouched']:,} of them touched by nobody, "
        f"{facts['unavailable']:,} not available"
    )
    rows = [
        [name, about["kind"], f"{about['known']:,}", f"{about['values']:,}", found]
        for name, about in facts["attributes"].items()
        for found in (about.get("range") or about.get("most common", ""),)
    ]
    if rows:
        columns = ["attribute", "kind", "items", "values", "most common, or range"]
        print_table("", columns, rows)
    else:
        print("they have no attributes; give a table with 'ltocf prepare --items FILE'")
