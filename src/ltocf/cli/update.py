"""ltocf update"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltocf.cli.log_options import READING, with_log_options
from ltocf.cli.options import Overwrite, RunPath
from ltocf.cli.output import Json, print_json
from ltocf.errors import ConfigError
from ltocf.progress import show_progress

if TYPE_CHECKING:
    from ltocf.data.interactions import Id
    from ltocf.runs.forgetting import Forgotten
    from ltocf.service.store.events import EventStore


@with_log_options({name: kind for name, kind in READING.items() if name != "repeats"})
def update(
    run: RunPath,
    log: Annotated[
        str | None,
        typer.Argument(
            metavar="[NEW_LOG]",
            help="A log in any form that 'ltocf prepare' takes. Its columns, threshold, weights "
            "and separator are those of the run's own log, unless options say otherwise. Default: "
            "the events of the run's service.",
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            metavar="STORE",
            help="Instead of a log, the events of a service: a SQLite file or postgresql://... "
            "Default: LTOCF_EVENTS, or events.db in the run's directory. Together with a log, only "
            "the list of users who asked to be forgotten is taken from it.",
        ),
    ] = None,
    check: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.9,
            help="With events: the share of the latest events to hold out. The new model is used "
            "only if it is no worse on them; the next update learns from them.",
        ),
    ] = 0.2,
    candidate: Annotated[
        bool,
        typer.Option(
            "--candidate",
            help="With events: save the new model beside the one in use, so that 'ltocf serve "
            "--experiment' can try it before it is promoted.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="RUN",
            help="Where the updated run goes. Default: a new version of the same run; 'ltocf "
            "rollback' returns to the old one.",
        ),
    ] = None,
    epochs: Annotated[
        int, typer.Option(min=0, help="How many epochs to train, from a warm start.")
    ] = 2,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            min=0, help="The learning rate of the update. Default: a quarter of the run's."
        ),
    ] = None,
    no_threshold: Annotated[
        bool,
        typer.Option(
            "--no-threshold", help="Count every row as a like, even if the run has a threshold."
        ),
    ] = False,
    text_ids: Annotated[
        bool,
        typer.Option(
            "--text-ids", help="Turn all ids into text if a new one is not a whole number."
        ),
    ] = False,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items",
            metavar="FILE",
            help="A table of items and their attributes: CSV, Parquet or JSON lines. All of them "
            "become items of the run, touched or not.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    *,
    given: dict[str, Any],
) -> None:
    """Add new interactions, users and items to a run, and fit it a little more."""
    from ltocf.runs.run import Run
    from ltocf.runs.update import update_run
    from ltocf.training.records import metric_text

    if log is None:
        if output is not None:
            raise ConfigError(
                "--output needs a log: an update with events is saved in the run itself"
            )
        update_with_events(run, events, epochs, learning_rate, check, candidate, as_json)
        return
    if candidate:
        raise ConfigError("--candidate works with events only, not with a log; leave it out")
    with show_progress(training="updating") as progress, opened_events(run, events) as store:
        current = Run.open(run)
        forgotten: Forgotten = nobody
        if store is not None:
            from ltocf.service.upkeep.event_update import ever_forgotten_by, purge

            current, forgotten = purge(current, store, progress), ever_forgotten_by(store)
        updated, added = update_run(
            current,
            log,
            output,
            epochs=epochs,
            learning_rate=learning_rate,
            names=items,
            overwrite=overwrite,
            progress=progress,
            every_row_liked=no_threshold,
            text_ids=text_ids,
            forgotten=forgotten,
            **given,
        )
    metrics = updated.metrics()
    if as_json:
        print_json({"run": str(updated.path), "added": asdict(added), "metrics": metrics})
        return
    if updated.path == current.path:
        print(
            f"nothing new: the run already has all of the log's {added.repeated:,} interactions; "
            "it is unchanged"
        )
        return
    print(
        f"added {added.interactions:,} interactions, {added.users:,} users and "
        f"{added.items:,} items; {added.repeated:,} were there already"
        + (f"; {added.taken_back:,} were taken back" if added.taken_back else "")
    )
    if metrics:
        print(f"test  {metric_text(metrics)}")
    print(f"saved in {updated.path}")


def nobody(ids: Iterable[Id]) -> Collection[Id]:
    return ()


@contextmanager
def opened_events(run: Path, events: str | None) -> Iterator[EventStore | None]:
    """The store of the run's service, if it has one."""
    where = events or os.environ.get("LTOCF_EVENTS") or str(run / "events.db")
    if "://" not in where and not Path(where).is_file():
        yield None
        return
    from ltocf.service.store.events import EventStore

    store = EventStore.open(where)
    try:
        yield store
    finally:
        store.close()


def update_with_events(
    run: Path,
    events: str | None,
    epochs: int,
    learning_rate: float | None,
    check: float,
    candidate: bool,
    as_json: bool,
) -> None:
    from ltocf.runs.run import Run
    from ltocf.service.upkeep.event_update import update_from_events

    with show_progress(training="updating") as progress, opened_events(run, events) as store:
        if store is None:
            raise ConfigError(
                "say what to add: a log, or --events STORE for the events of a service"
            )
        updated, added, checked = update_from_events(
            Run.open(run),
            store,
            epochs=epochs,
            learning_rate=learning_rate,
            checked=check,
            candidate=candidate,
            progress=progress,
        )
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
        f"{added.items:,} items; {'kept as a candidate' if candidate else 'now in use'}: "
        f"{updated.path}"
    )
