"""ltocf update"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.options import (
    Column,
    Encoding,
    Header,
    Overwrite,
    RunPath,
    Separator,
    SkipBad,
    Weight,
)
from ltocf.cli.output import Json, print_json, show_progress


def update(
    run: RunPath,
    log: Annotated[
        str,
        typer.Argument(
            metavar="NEW_LOG",
            help="In any form that 'ltocf prepare' takes. It is read as the run's own log was: "
            "with its columns, threshold, weights and separator, unless they are named here.",
        ),
    ],
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
        typer.Option(
            help="Ratings from here on are likes. Default: as when the data set was prepared."
        ),
    ] = None,
    no_threshold: Annotated[
        bool, typer.Option("--no-threshold", help="Every row is a like, whatever was before.")
    ] = False,
    weight: Weight = None,
    separator: Separator = None,
    header: Header = None,
    encoding: Encoding = None,
    skip_bad: SkipBad = False,
    text_ids: Annotated[
        bool,
        typer.Option(
            "--text-ids", help="Turn all ids into text if a new one is not a whole number."
        ),
    ] = False,
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
            every_row_liked=no_threshold,
            weight=weight,
            separator=separator,
            header=header,
            encoding=encoding,
            skip_bad=skip_bad or None,
            text_ids=text_ids,
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
