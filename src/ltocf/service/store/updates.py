"""The outcome of each update (used, kept as a candidate, or refused) with the figures that
decided."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from ltocf.service.store.databases import exclusive
from ltocf.service.store.events import EventStore, now
from ltocf.service.store.tables import tables

UPDATES = sa.Table(
    "updates",
    tables,
    sa.Column("time", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("version", sa.Text),
    sa.Column("events", sa.BigInteger, nullable=False),
    sa.Column("old_hit_rate", sa.Float),
    sa.Column("new_hit_rate", sa.Float),
    sa.Column("old_mrr", sa.Float),
    sa.Column("new_mrr", sa.Float),
)


class UpdateRecord(NamedTuple):
    """`events` is the number of events that the models were checked on; if it is 0, there are no
    rates."""

    time: int  # microseconds since 1970
    outcome: str  # used, candidate or refused
    version: str | None = None
    events: int = 0
    old_hit_rate: float | None = None
    new_hit_rate: float | None = None
    old_mrr: float | None = None
    new_mrr: float | None = None


def record_update(store: EventStore, outcome: str, **figures: object) -> None:
    row = {"time": now(), "outcome": outcome, "events": 0, **figures}
    with exclusive(store.engine) as connection:
        connection.execute(UPDATES.insert(), [row])


def latest_updates(store: EventStore, most: int) -> list[UpdateRecord]:
    """The latest first."""
    query = sa.select(*(UPDATES.c[name] for name in UpdateRecord._fields))
    with store.engine.connect() as connection:
        rows = connection.execute(query.order_by(UPDATES.c.time.desc()).limit(most))
        return [UpdateRecord(*row) for row in rows]
