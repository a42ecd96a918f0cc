"""ltocf backup, restore and prune"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltocf.cli.options import RunPath
from ltocf.cli.output import Json, print_json
from ltocf.cli.serve import Events

if TYPE_CHECKING:
    from ltocf.service.store.events import EventStore


def open_events(run: Path, events: str | None) -> EventStore:
    from ltocf.runs.run import EVENTS
    from ltocf.runs.versions import refuse_foreign
    from ltocf.service.store.events import EventStore

    refuse_foreign(run)  # else opening the store would create a file in a directory not ours
    return EventStore.open(events or str(run / EVENTS))


def backup(
    run: RunPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ],
    events: Events = None,
    as_json: Json = False,
) -> None:
    """Save a run, all its versions and its events in one file, while it is served."""
    from ltocf.service.upkeep.backup import back_up

    store = open_events(run, events)
    saved = back_up(run, store, output)
    store.close()
    if as_json:
        print_json({"backup": str(output), **saved._asdict()})
    else:
        print(f"saved {saved.files:,} files and {saved.rows:,} rows of events in {output}")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What 'ltocf backup' wrote.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", help="Where the run goes.")
    ],
    events: Events = None,
    as_json: Json = False,
) -> None:
    """Bring a run and its events back from a backup."""
    from ltocf.service.upkeep.backup import restore as bring_back

    saved = bring_back(file, output, events)
    if as_json:
        print_json({"run": str(output), **saved._asdict()})
    else:
        print(f"restored {saved.files:,} files and {saved.rows:,} rows of events to {output}")


def prune(run: RunPath, events: Events = None, as_json: Json = False) -> None:
    """Remove events that all versions of a run have learned from; its data set keeps them."""
    from ltocf.service.upkeep.backup import prune_learned

    store = open_events(run, events)
    removed = prune_learned(run, store)
    store.close()
    if as_json:
        print_json({"run": str(run), "removed": removed})
    else:
        print(f"removed {removed:,} events; they stay in the data set of {run}")
