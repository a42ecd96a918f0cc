"""What happened since training, kept so that an acknowledged event is never lost.

A store is a SQLite file or a PostgreSQL database. Events are numbered in the order in which they
were committed, under a lock, so that whoever has read up to a number has missed nothing before it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from ltocf.errors import DataError
from ltocf.service.databases import connect, display_name, exclusive

FORMAT = "1"
SOME = 500  # values of one query; databases limit them
FORGET = "forget"  # the kind of the one event that is left of somebody who was forgotten

tables = sa.MetaData()
EVENTS = sa.Table(
    "events",
    tables,
    sa.Column(
        "number",
        sa.BigInteger().with_variant(sa.Integer, "sqlite"),
        primary_key=True,
        autoincrement=False,
    ),
    sa.Column("key", sa.Text, unique=True),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("item", sa.Text),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text),
    sa.Index("events_of_user", "user", "number"),
)
QUALITY = sa.Table(
    "quality",
    tables,
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("hour", sa.BigInteger, primary_key=True),
    sa.Column("events", sa.BigInteger, nullable=False),
    sa.Column("hits", sa.BigInteger, nullable=False),
    sa.Column("reciprocal", sa.Float, nullable=False),
)
ABOUT = sa.Table(
    "about",
    tables,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

COLUMNS = [EVENTS.c[name] for name in ("user", "item", "time", "kind", "key", "number")]
AFTER = sa.select(*COLUMNS).where(EVENTS.c.number > sa.bindparam("after")).order_by(EVENTS.c.number)
# Built once, since every list asks it: building it takes longer than the answer.
OF_USERS = AFTER.where(EVENTS.c.user.in_(sa.bindparam("users", expanding=True)))


@dataclass(frozen=True)
class Event:
    """Somebody touched an item. Without an item, everything before it is forgotten."""

    user: str
    item: str | None
    time: int  # microseconds since 1970
    kind: str | None = None
    key: str | None = None  # the same key again is the same event again
    number: int = 0  # given by the store


class Quality(NamedTuple):
    """How well a model's lists met the events of an hour."""

    model: str
    hour: int  # since 1970
    events: int
    hits: int  # among the first 20
    reciprocal: float  # the sum of 1 / rank


def now() -> int:
    return time.time_ns() // 1000


def _where_in(
    connection: sa.Connection, query: sa.Select[Any], column: sa.Column[Any], values: Sequence[str]
) -> Iterator[sa.Row[Any]]:
    for start in range(0, len(values), SOME):
        yield from connection.execute(query.where(column.in_(values[start : start + SOME])))


def _read(row: Sequence[Any]) -> Event:
    return Event(*row)


class EventStore:
    """`EventStore.open(path or URL)`; every method may be called from any thread or process."""

    def __init__(self, engine: sa.Engine, name: str) -> None:
        self.engine, self.name = engine, name
        with exclusive(self.engine) as connection:
            tables.create_all(connection)
            about = {row.name: row.value for row in connection.execute(sa.select(ABOUT))}
            if not about:
                about = {"format": FORMAT, "id": uuid.uuid4().hex}
                rows = [{"name": k, "value": v} for k, v in about.items()]
                connection.execute(ABOUT.insert(), rows)
        if about.get("format") != FORMAT:
            raise DataError(f"{name}: events of another format; this ltocf reads {FORMAT}")
        self.id = about["id"]

    @classmethod
    def open(cls, where: str | Path) -> EventStore:
        """A SQLite file, made if it is not there, or the tables of a postgresql:// URL."""
        name = display_name(where)
        try:
            return cls(connect(where), name)
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise DataError(f"cannot open the event store {name!r}: {reason}") from None

    def close(self) -> None:
        self.engine.dispose()

    def add(self, batches: Sequence[Sequence[Event]]) -> list[list[Event]]:
        """Commit all batches at once; of each, the events that are new, with their numbers.

        A key that is in the store, or came earlier in these batches, is not counted again.
        """
        keys = [event.key for batch in batches for event in batch if event.key is not None]
        with exclusive(self.engine) as connection:
            found = _where_in(connection, sa.select(EVENTS.c.key), EVENTS.c.key, keys)
            taken = {row[0] for row in found}
            number, added = self._last(connection), []
            for batch in batches:
                fresh = []
                for event in batch:
                    if event.key is None or event.key not in taken:
                        taken.add(event.key)
                        number += 1
                        fresh.append(replace(event, number=number))
                added.append(fresh)
            rows = [vars(event) for fresh in added for event in fresh]
            if rows:
                connection.execute(EVENTS.insert(), rows)
        return added

    def of_users(self, users: Sequence[str], *, after: int = 0) -> dict[str, list[Event]]:
        """The events of each, in the order of their numbers; who has none is left out."""
        found: dict[str, list[Event]] = {}
        with self.engine.connect() as connection:
            for start in range(0, len(users), SOME):
                some = {"after": after, "users": users[start : start + SOME]}
                for row in connection.execute(OF_USERS, some):
                    found.setdefault(row[0], []).append(_read(row))
        return found

    def since(self, number: int) -> list[Event]:
        """Everybody's events after this number, in order."""
        with self.engine.connect() as connection:
            return [_read(row) for row in connection.execute(AFTER, {"after": number})]

    def forget(self, user: str) -> None:
        """Remove all of somebody's events; that they were forgotten is the one that stays."""
        with exclusive(self.engine) as connection:
            number = self._last(connection) + 1
            connection.execute(EVENTS.delete().where(EVENTS.c.user == user))
            last = Event(user, None, now(), FORGET, None, number)
            connection.execute(EVENTS.insert(), [vars(last)])
        if self.engine.dialect.name == "sqlite":
            with self.engine.connect() as connection:  # the log must not keep what was removed
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()

    def search_users(self, text: str, limit: int) -> list[str]:
        """Users with events whose id begins with this text."""
        users = EVENTS.c.user
        query = (
            sa.select(users)
            .where(users.startswith(text, autoescape=True), EVENTS.c.item.is_not(None))
            .distinct()
            .order_by(users)
            .limit(limit)
        )
        with self.engine.connect() as connection:
            return list(connection.scalars(query))

    def item_counts(self, after: int) -> dict[str, int]:
        """How many people touched each item after this number."""
        people = sa.func.count(sa.distinct(EVENTS.c.user))
        query = sa.select(EVENTS.c.item, people).group_by(EVENTS.c.item)
        query = query.where(EVENTS.c.number > after, EVENTS.c.item.is_not(None))
        with self.engine.connect() as connection:
            return {item: count for item, count in connection.execute(query)}

    def last(self) -> int:
        with self.engine.connect() as connection:
            return self._last(connection)

    def record(self, qualities: Sequence[Quality]) -> None:
        """Add to what is known of a model's hour."""
        dialect = postgresql if self.engine.dialect.name == "postgresql" else sqlite
        insert = dialect.insert(QUALITY)
        sums = {
            name: QUALITY.c[name] + insert.excluded[name]
            for name in ("events", "hits", "reciprocal")
        }
        query = insert.on_conflict_do_update(index_elements=["model", "hour"], set_=sums)
        with exclusive(self.engine) as connection:
            connection.execute(query, [quality._asdict() for quality in qualities])

    def qualities(self) -> list[Quality]:
        with self.engine.connect() as connection:
            query = sa.select(QUALITY).order_by(QUALITY.c.hour, QUALITY.c.model)
            return [Quality(*row) for row in connection.execute(query)]

    def _last(self, connection: sa.Connection) -> int:
        return connection.scalar(sa.select(sa.func.max(EVENTS.c.number))) or 0
