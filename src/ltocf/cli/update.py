"""ltocf update"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.options import Column, Overwrite, RunPath
from ltocf.cli.output import Json, print_json, show_progress


def update(
    run: RunPath,
    log: Annotated[Path, typer.Argument(metavar="NEW_LOG", help="CSV, TSV or Parquet.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUN", help="Default: the run is replaced."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=0, help="Of the warm fit.")] = 2,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0, help="Of the warm fit. Default: a quarter of the run's."),
    ] = None,
    user: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Leave out lower ratings."),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option("--items", metavar="FILE", help="A table of items with names to display."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Add new interactions, users and items to a run, and fit it a little more."""
    from ltocf.runs.records import metric_text
    from ltocf.runs.run import Run
    from ltocf.runs.update import update_run

    with show_progress(training="updating") as progress:
        updated, added = update_run(
            Run.open(run),
            log,
            output,
            epochs=epochs,
            learning_rate=learning_rate,
            names=items,
            overwrite=overwrite,
            progress=progress,
            user=user,
            item=item,
            time=time,
            rating=rating,
            threshold=threshold,
        )
    metrics = updated.metrics()
    if as_json:
        print_json({"run": str(updated.path), "added": asdict(added), "metrics": metrics})
        return
    print(
        f"added {added.interactions:,} interactions, {added.users:,} users and "
        f"{added.items:,} items; {added.repeated:,} were there already"
    )
    if metrics:
        print(f"test  {metric_text(metrics)}")
    print(f"saved in {updated.path}")
