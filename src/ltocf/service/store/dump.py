"""Writes a store as lines of JSON, one per row, the same from SQLite and from PostgreSQL; and reads
it back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO

import sqlalchemy as sa

from ltocf.errors import DataError
from ltocf.service.store.databases import exclusive
from ltocf.service.store.events import EventStore
from ltocf.service.store.forgetting import spend
from ltocf.service.store.tables import ABOUT, EVENTS, tables
from ltocf.service.store.updates import UPDATES

AT_ONCE = 1000
assert UPDATES.metadata is tables  # all tables are defined by now


def dump_store(store: EventStore, file: IO[str]) -> int:
    """Write all tables as they are at one moment. Returns the number of rows."""
    snapshot = (
        "BEGIN"
        if store.engine.dialect.name == "sqlite"
        else ("BEGIN ISOLATION LEVEL REPEATABLE READ")
    )
    rows = 0
    with store.engine.connect() as connection:
        connection.exec_driver_sql(snapshot)
        for table in tables.sorted_tables:
            for row in connection.execute(sa.select(table)):
                file.write(json.dumps([table.name, *row]) + "\n")
                rows += 1
        connection.exec_driver_sql("COMMIT")
    return rows


def load_store(store: EventStore, lines: Iterable[str]) -> int:
    """Fill an empty store. Returns the number of rows. The store takes the id of the dumped one, by
    which a run records which events it has learned from."""
    names = {table.name: table for table in tables.sorted_tables}
    rows, waiting = 0, []
    with exclusive(store.engine) as connection:
        if connection.scalar(sa.select(sa.func.count()).select_from(EVENTS)):
            raise DataError(f"{store.name}: already has events; restore into an empty store")
        connection.execute(ABOUT.delete())
        for line in lines:
            name, *values = json.loads(line)
            waiting.append((name, values))
            if len(waiting) == AT_ONCE:
                rows += _insert(connection, names, waiting)
                waiting = []
        rows += _insert(connection, names, waiting)
    return rows


def _insert(
    connection: sa.Connection, names: dict[str, sa.Table], waiting: list[tuple[str, list[object]]]
) -> int:
    for name in dict.fromkeys(name for name, _ in waiting):
        columns = [column.name for column in names[name].columns]
        rows = [dict(zip(columns, values, strict=True)) for one, values in waiting if one == name]
        connection.execute(names[name].insert(), rows)
    return len(waiting)


def prune(store: EventStore, learned: int) -> int:
    """Remove the events up to this number, which are in the data set. Returns how many. Their keys,
    the markers of forgotten people and the last number are kept."""
    removed = 0
    while True:
        with store.writing() as connection:
            last = connection.scalar(sa.select(sa.func.max(EVENTS.c.number))) or 0
            query = sa.select(EVENTS.c.number, EVENTS.c.key).where(
                EVENTS.c.number <= min(learned, last - 1), EVENTS.c.item.is_not(None)
            )
            rows = connection.execute(query.order_by(EVENTS.c.number).limit(AT_ONCE)).all()
            if not rows:
                return removed
            spend(connection, store.id, [key for _, key in rows if key is not None])
            numbers = [number for number, _ in rows]
            connection.execute(EVENTS.delete().where(EVENTS.c.number.in_(numbers)))
            removed += len(rows)
