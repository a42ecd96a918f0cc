"""ltocf prepare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.options import Column
from ltocf.cli.output import Json, print_json, stage_progress


def prepare(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="CSV, TSV or Parquet, or a folder of such files.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DATASET", help="A new directory.")
    ],
    user: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Leave out rows with a lower rating."),
    ] = None,
    separator: Annotated[str | None, typer.Option(help="Of columns. Default: guessed.")] = None,
    min_user: Annotated[int, typer.Option(help="Interactions a user must have.")] = 1,
    min_item: Annotated[int, typer.Option(help="Interactions an item must have.")] = 1,
    split: Annotated[str, typer.Option(help="ratio, temporal or leave-last-out.")] = "ratio",
    ratio: Annotated[float, typer.Option(help="The share of train.")] = 0.8,
    valid: Annotated[float, typer.Option(help="The share of train held out to choose by.")] = 0.0,
    items: Annotated[
        Path | None,
        typer.Option("--items", metavar="FILE", help="A table of items with names to display."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of a random split.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old one.")] = False,
    as_json: Json = False,
) -> None:
    """Turn a log of who touched what into a data set to train on."""
    from ltocf.data.ingest.prepare import Recipe
    from ltocf.data.ingest.prepare import prepare as prepare_log

    recipe = Recipe(
        user=user,
        item=item,
        time=time,
        rating=rating,
        threshold=threshold,
        separator=separator,
        min_user=min_user,
        min_item=min_item,
        split=split,  # type: ignore[arg-type]  # checked by the recipe
        ratio=ratio,
        valid=valid,
        seed=seed,
    )
    with stage_progress() as progress:
        report = prepare_log(
            log, output, recipe, names=items, overwrite=overwrite, progress=progress
        )
    if as_json:
        print_json(report.to_dict())
    else:
        print("\n".join(report.lines()))
