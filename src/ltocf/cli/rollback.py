"""ltocf rollback"""

from __future__ import annotations

from ltocf.cli.options import RunPath
from ltocf.cli.output import Json, print_json


def rollback(run: RunPath, as_json: Json = False) -> None:
    """Return to the model that a run had before its last update. Repeat it to undo that."""
    from ltocf.runs.versions import rollback as return_to_previous

    # What is in use is not read: it may be damaged, and this is the way out.
    now = return_to_previous(run)
    if as_json:
        print_json({"run": str(run), **now._asdict()})
    else:
        print(f"{run} is at version {now.current} again; version {now.previous} is kept")
