"""Events since training, stored so that an acknowledged event is never lost.

A store is a SQLite file or a PostgreSQL database. Events are numbered in the order in which they
were committed, under a lock. So a reader that has read up to a number has missed no event before
it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ltocf.data.ingest.cells.kinds import count_of_kind, parse_kinds
from ltocf.errors import DataError
from ltocf.service.problems import Busy
from ltocf.service.store import forgetting
from ltocf.service.store.counts import count_people
from ltocf.service.store.databases import DirectQuery, connect, display_name, exclusive
from ltocf.service.store.impressions import (
    Impression,
    ShownQuality,
    count_impressions,
    mark_taken,
    shown_in_vain,
    shown_qualities,
)
from ltocf.service.store.qualities import add_qualities, all_qualities
from ltocf.service.store.tables import ABOUT, COLUMNS, EVENTS, SHOWN, Event, Quality, now, tables

__all__ = ["Event", "EventStore", "Quality", "now"]

FORMAT = "2"
SOME = 250  # users per query, since databases limit the number of values
RECENT = 5000  # the latest events of one person, which a list reads

AFTER = sa.select(*COLUMNS).where(EVENTS.c.number > sa.bindparam("after")).order_by(EVENTS.c.number)


def _latest_of(users: Any) -> sa.Select[Any]:
    return (
        sa.select(*COLUMNS)
        .where(EVENTS.c.number > sa.bindparam("after"))
        .where(EVENTS.c.user.in_(users))
        .order_by(EVENTS.c.number.desc())
        .limit(sa.bindparam("most"))
    )


# Built once: every list runs one of these queries, and building it takes longer than the answer. A
# list of any length is written into the text each time, which takes a third of the answer's time.
OF_USER = _latest_of([sa.bindparam("user"), sa.bindparam("marker")])
OF_USERS = _latest_of(sa.bindparam("users", expanding=True))


def _where_in(
    connection: sa.Connection, query: sa.Select[Any], column: sa.Column[Any], values: Sequence[str]
) -> Iterator[sa.Row[Any]]:
    for start in range(0, len(values), SOME):
        yield from connection.execute(query.where(column.in_(values[start : start + SOME])))


class EventStore:
    """`EventStore.open(path or URL)`; every method may be called from any thread or process."""

    def __init__(self, engine: sa.Engine, name: str) -> None:
        self.engine, self.name = engine, name
        with exclusive(self.engine) as connection:
            fresh = not sa.inspect(connection).has_table(SHOWN.name)
            tables.create_all(connection)
            if fresh:
                forgetting.keep_no_statistics(connection)
            about = {row.name: row.value for row in connection.execute(sa.select(ABOUT))}
            if not about:
                about = {"format": FORMAT, "id": uuid.uuid4().hex}
                rows = [{"name": k, "value": v} for k, v in about.items()]
                connection.execute(ABOUT.insert(), rows)
        about.pop("alive", None)
        if about.get("format") != FORMAT:
            raise DataError(f"{name}: the events have another format; this ltocf reads {FORMAT}")
        self.id = about["id"]
        self.weigh = about.get("weigh")  # the weight of each kind of event, as text
        database = engine.url.database or ""
        self._of_user = DirectQuery(engine, OF_USER)
        self._path = Path(database) if engine.dialect.name == "sqlite" else None
        self._file = self._identity()

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

    def weigh_by(self, table: str) -> None:
        """Use these weights of kinds of events from now on, in every process that opens the
        store."""
        parse_kinds(table)
        with self.writing() as connection:
            connection.execute(ABOUT.delete().where(ABOUT.c.name == "weigh"))
            connection.execute(ABOUT.insert(), [{"name": "weigh", "value": table}])
        self.weigh = table

    def present(self) -> bool:
        """Whether the file of events is still the one that was opened: SQLite would go on writing
        into a removed file."""
        return self._identity() == self._file

    def _identity(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            status = os.stat(self._path)
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    @contextmanager
    def writing(self, wanted: Callable[[], bool] = lambda: True) -> Iterator[sa.Connection]:
        """A transaction that no other writer overlaps. It is committed only if it is still
        `wanted`: a client that was told of a failure must not find later that the write took
        place."""
        with exclusive(self.engine) as connection:
            yield connection
            if not wanted():
                raise Busy("the client has gone")
            if not self.present():
                raise Busy(f"the file of events {self.name} was removed or replaced")

    def add(
        self, batches: Sequence[Sequence[Event]], wanted: Callable[[], bool] = lambda: True
    ) -> list[list[Event]]:
        """Commit all batches at once. Returns the new events of each, with their numbers.

        An event is not new if its key is in the store, was there before its user was forgotten,
        or came earlier in these batches.
        """
        keys = [event.key for batch in batches for event in batch if event.key is not None]
        digests = {forgetting.digest(self.id, key): key for key in keys}
        with self.writing(wanted) as connection:
            found = _where_in(connection, sa.select(EVENTS.c.key), EVENTS.c.key, keys)
            taken = {row[0] for row in found}
            spent = forgetting.spent_among(connection, digests)
            taken |= {digests[one] for one in spent}
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
                kinds = parse_kinds(self.weigh)
                # An event that takes back or hides does not count as taking the item from a list.
                mark_taken(connection, [r for r in rows if count_of_kind(r["kind"], kinds) > 0])
        return added

    def of_users(
        self, users: Sequence[str], *, after: int = 0, most: int = RECENT
    ) -> dict[str, list[Event]]:
        """The events of each, at most the latest `most`, in the order of their numbers; users
        without events are left out."""
        names = {forgetting.marker(self.id, user): user for user in users}
        found: dict[str, list[Event]] = {}
        for start in range(0, len(users), SOME):
            some = list(users[start : start + SOME])
            for user, *others in self._latest(some, after, most):
                name = names.get(user, user)
                found.setdefault(name, []).append(Event(name, *others))
        return {user: events[::-1] for user, events in found.items()}

    def _latest(
        self, users: list[str], after: int, most: int
    ) -> Sequence[tuple[Any, ...] | sa.Row[Any]]:
        """The latest events first."""
        markers = [forgetting.marker(self.id, user) for user in users]
        values: dict[str, Any] = {"after": after, "most": most}
        if len(users) == 1:
            return self._of_user.all(values | {"user": users[0], "marker": markers[0]})
        with self.engine.connect() as connection:
            rows = connection.execute(OF_USERS, values | {"users": users + markers}).all()
        if len(rows) < most:
            return rows
        # One of them has very many events (it may be a program), which would crowd out the others'.
        return [row for user in users for row in self._latest([user], after, most)]

    def since(self, number: int) -> list[Event]:
        """All events after this number, in order."""
        with self.engine.connect() as connection:
            return [Event(*row) for row in connection.execute(AFTER, {"after": number})]

    def forget(self, user: str, wanted: Callable[[], bool] = lambda: True) -> None:
        """Remove all events of a user; only digests of their id and keys are kept."""
        with self.writing(wanted) as connection:
            forgetting.forget(connection, self.id, user, self._last(connection) + 1)
        forgetting.truncate_log(self.engine)

    def forgotten(self, after: int = 0) -> frozenset[str]:
        """The markers of people who were forgotten after this number, for `forgotten_among`."""
        with self.engine.connect() as connection:
            return forgetting.markers(connection, after)

    def forgotten_among(self, users: Iterable[Any], markers: frozenset[str]) -> list[Any]:
        """Those of the ids that belong to one of the markers."""
        if not markers:
            return []
        return [user for user in users if forgetting.marker(self.id, str(user)) in markers]

    def has(self, user: str) -> bool:
        """Whether any event of this user is stored, whether or not the model has learned from
        it."""
        with self.engine.connect() as connection:
            query = sa.select(EVENTS.c.number).where(EVENTS.c.user == user).limit(1)
            return connection.scalar(query) is not None

    def rewrite(self) -> None:
        """Erase removed rows from the tables' pages; PostgreSQL locks the tables for that."""
        forgetting.rewrite(self.engine)

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

    def item_counts(
        self,
        after: int,
        *,
        since: int | None = None,
        until: int | None = None,
        kinds: Mapping[str, float] | None = None,
    ) -> dict[str, int]:
        """How many people liked each item for the first time after `after`, of the events after
        `since` until `until`; `kinds` determines which events are likes."""
        with self.engine.connect() as connection:
            return count_people(
                connection, after, after if since is None else since, until, kinds or {}
            )

    def try_to_write(self) -> None:
        """Write a value that is never read, to see whether writing works."""
        with self.writing() as connection:
            connection.execute(ABOUT.delete().where(ABOUT.c.name == "alive"))
            connection.execute(ABOUT.insert(), [{"name": "alive", "value": str(now())}])

    def last(self) -> int:
        with self.engine.connect() as connection:
            return self._last(connection)

    def record(self, qualities: Sequence[Quality]) -> None:
        """Add to the quality figures of models by hour."""
        with self.writing() as connection:
            add_qualities(connection, qualities)

    def shown(
        self, model: str, shown: Sequence[Impression], wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Count what people were shown in lists of this model."""
        with self.writing(wanted) as connection:
            count_impressions(connection, model, shown)

    def shown_in_vain(self, users: Sequence[str]) -> dict[str, dict[str, int]]:
        """How often each person was shown each item that they did not take."""
        with self.engine.connect() as connection:
            return shown_in_vain(connection, users)

    def shown_qualities(self) -> list[ShownQuality]:
        with self.engine.connect() as connection:
            return shown_qualities(connection)

    def qualities(self) -> list[Quality]:
        with self.engine.connect() as connection:
            return all_qualities(connection)

    def _last(self, connection: sa.Connection) -> int:
        return connection.scalar(sa.select(sa.func.max(EVENTS.c.number))) or 0
