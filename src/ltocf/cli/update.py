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
from ltocf.cli.output import Json, print_json
from ltocf.errors import ConfigError
from ltocf.progress import show_progress


def update(
    run: RunPath,
    log: Annotated[
        str | None,
        typer.Argument(
            metavar="[NEW_LOG]",
            help="A log in any form that 'ltocf prepare' takes. It is read as the run's own log "
            "was, with its columns, threshold, weights and separator, unless they are named here. "
            "Default: the events of the run's service.",
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            metavar="STORE",
            help="Instead of a log, the events of a service: a SQLite file or postgresql://... "
            "Default: LTOCF_EVENTS, or events.db in the run's directory.",
        ),
    ] = None,
    check: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.9,
            help="With events: the share of them, the latest, that the new model is checked on "
            "before it is used. They are learned the next time.",
        ),
    ] = 0.2,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="RUN",
            help="Where the updated run goes. Default: a new version in the run's place; 'ltocf "
            "rollback' returns to the old.",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=0, help="Epochs of the warm fit.")] = 2,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            min=0, help="The learning rate of the warm fit. Default: a quarter of the run's."
        ),
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

    if log is None:
        if output is not None:
            raise ConfigError("events go into the run itself: --output goes with a log")
        update_with_events(run, events, epochs, learning_rate, check, as_json)
        return
    if events is not None:
        raise ConfigError("give either a log or --events STORE")
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


def update_with_events(
    run: Path,
    events: str | None,
    epochs: int,
    learning_rate: float | None,
    check: float,
    as_json: bool,
) -> None:
    import os

    from ltocf.runs.run import EVENTS, Run
    from ltocf.service.events import EventStore
    from ltocf.service.updating import update_from_events

    where = events or os.environ.get("LTOCF_EVENTS") or str(run / EVENTS)
    if "://" not in where and not Path(where).is_file():
        raise ConfigError("say what to add: a log, or --events STORE for the events of a service")
    store = EventStore.open(where)
    with show_progress(training="updating") as progress:
        updated, added, checked = update_from_events(
            Run.open(run),
            store,
            epochs=epochs,
            learning_rate=learning_rate,
            checked=check,
            progress=progress,
        )
    store.close()
    if as_json:
        about = None if checked is None else asdict(checked)
        print_json({"run": str(updated.path), "added": asdict(added), "check": about})
        return
    if checked is not None:
        print(
            f"on the latest {checked.events:,} events: hit rate@20 {checked.new_hit_rate:.3f} "
            f"(before {checked.old_hit_rate:.3f}), MRR {checked.new_mrr:.4f} "
            f"(before {checked.old_mrr:.4f})"
        )
    print(
        f"learned {added.interactions:,} interactions, {added.users:,} users and "
        f"{added.items:,} items; now in use: {updated.path}"
    )
