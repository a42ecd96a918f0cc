"""Messages about a log: what is wrong with a row, and which usable columns are not used."""

from __future__ import annotations

from ltocf.data.ingest.cells.dates import columns_of_dates
from ltocf.data.ingest.cells.kinds import EXAMPLE
from ltocf.data.ingest.columns import LogColumns, guess_column
from ltocf.data.ingest.readers import Table
from ltocf.data.ingest.roles import OPTIONAL
from ltocf.data.pairs.store import LARGEST_WEIGHT, LEAST_WEIGHT

HINTS = {
    "rating": "column {name!r}: every rating counts as a like; "
    "threshold=4 (--threshold 4) asks for 4 or more",
    "weight": "column {name!r} is not used; weight= (--weight {name}) uses it as strength",
    "kind": "column {name!r}: every kind of event counts alike; kind= and weigh= (--kind {name} "
    f"--weigh {EXAMPLE}) give each a weight",
    "time": "column {name!r} holds dates and is not used; time= (--time {name}) uses the order",
}


def unused_columns(table: Table, columns: LogColumns) -> list[str]:
    """A hint for each column of ratings, weights, kinds or dates that is not used."""
    used = set(columns.names().values())
    notes = []
    for role in OPTIONAL:
        name = guess_column(table, role)
        if name is not None and name not in used:
            used.add(name)
            notes.append(HINTS[role].format(name=name))
    if columns.time is None:
        notes += [HINTS["time"].format(name=name) for name in columns_of_dates(table, used)[:1]]
    return notes


def what_is_wrong(role: str, value: object) -> str:
    """What is wrong with a value in the column of this role, as a message."""
    shown = repr(value)[:60]
    if role in ("user", "item"):
        missing = value is None or str(value).strip() == "" or value != value
        return f"no {role} id" if missing else f"{role} id {shown} is not a whole number"
    if value is None:
        return f"no {role}"
    if role == "rating":
        return f"{shown} is not a number"
    if role == "weight":
        return f"{shown} is not a weight between {LEAST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
    if role == "kind":
        return f"kind {shown} is not in weigh (--weigh); name it there (0 ignores it)"
    return f"time {shown} is not written like the others"
