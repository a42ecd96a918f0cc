"""The latest events and how many came in each hour: the cost does not grow with the store."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from ltocf.service.store.events import Event, EventStore
from ltocf.service.store.forgetting import spend
from ltocf.service.store.tables import EVENTS

HOUR = 3_600_000_000  # in microseconds
COUNTED = 50_000  # the latest events, which are counted by hour; earlier ones are not
NOBODY, TAKEN_BACK = "", "taken back"  # user and kind of the row that replaces a removed event
FIELDS = ("user", "item", "time", "kind", "key", "number")


def latest_events(store: EventStore, most: int) -> list[Event]:
    """The latest events of all people, the latest first."""
    query = sa.select(*(EVENTS.c[name] for name in FIELDS)).where(EVENTS.c.item.is_not(None))
    with store.engine.connect() as connection:
        rows = connection.execute(query.order_by(EVENTS.c.number.desc()).limit(most))
        return [Event(*row) for row in rows]


def events_by_hour(store: EventStore, *, since_hour: int) -> dict[int, int]:
    """Whole hours since 1970 and the number of events in each, among the latest COUNTED events."""
    latest = _latest_times()
    hour = (latest.c.time // HOUR).label("hour")
    query = sa.select(hour, sa.func.count()).group_by(hour)
    with store.engine.connect() as connection:
        found = {int(row[0]): int(row[1]) for row in connection.execute(query)}
    if sum(found.values()) >= COUNTED:
        found.pop(min(found))  # the first hour is incomplete
    return {hour: events for hour, events in found.items() if hour >= since_hour}


def events_since(store: EventStore, moment: int) -> int:
    """How many of the latest events came after this moment, in microseconds."""
    latest = _latest_times()
    query = sa.select(sa.func.count()).where(latest.c.time > moment)
    with store.engine.connect() as connection:
        return connection.scalar(query) or 0


def _latest_times() -> sa.Subquery:
    times = sa.select(EVENTS.c.time).where(EVENTS.c.item.is_not(None))
    return times.order_by(EVENTS.c.number.desc()).limit(COUNTED).subquery()


def take_back(
    store: EventStore, key: str, *, after: int, wanted: Callable[[], bool] = lambda: True
) -> Event | None:
    """Remove the event with this key, if it came after this number. Returns what was removed.

    Its number is not used again, since others have read up to it, and its key is remembered, so
    that a redelivery does not bring it back.
    """
    query = sa.select(*(EVENTS.c[name] for name in FIELDS))
    with store.writing(wanted) as connection:
        row = connection.execute(
            query.where(EVENTS.c.key == key, EVENTS.c.item.is_not(None))
        ).first()
        if row is None:
            return None
        event = Event(*row)
        if event.number > after:
            nothing = {"user": NOBODY, "item": None, "kind": TAKEN_BACK, "key": None}
            change = EVENTS.update().where(EVENTS.c.number == event.number)
            connection.execute(change.values(**nothing))
            spend(connection, store.id, [key])
        return event
