"""What is kept of a person who asked to be forgotten: digests, from which no id can be read.

A marker replaces their events; events after it belong to a new person. It is a digest of their id
with the store's id as key. With the store and a list of ids one can find out which of these were
forgotten; without the ids one cannot.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterable

import sqlalchemy as sa

from ltocf.service.store.tables import EVENTS, PARTICIPANTS, SHOWN, SPENT_KEYS, Event, now

FORGET = "forget"  # the kind of a marker
PREFIX = "forgotten:"
CHECKPOINTS, PAUSE_SECONDS = 40, 0.05


def digest(store_id: str, text: str) -> str:
    return hmac.new(store_id.encode(), text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def marker(store_id: str, user: str) -> str:
    """The text that replaces a forgotten user in the column of users."""
    return PREFIX + digest(store_id, user)


def forget(connection: sa.Connection, store_id: str, user: str, number: int) -> None:
    """Within a transaction, remove a user's events and leave a marker with this number."""
    theirs = EVENTS.c.user == user
    keys = connection.scalars(sa.select(EVENTS.c.key).where(theirs, EVENTS.c.key.is_not(None)))
    spend(connection, store_id, keys)
    name = marker(store_id, user)
    connection.execute(EVENTS.delete().where(EVENTS.c.user.in_([user, name])))
    for table in (PARTICIPANTS, SHOWN):
        connection.execute(table.delete().where(table.c.user == user))
    connection.execute(EVENTS.insert(), [vars(Event(name, None, now(), FORGET, None, number))])


def spend(connection: sa.Connection, store_id: str, keys: Iterable[str]) -> None:
    """Remember the keys of removed events, so that a redelivered event is not new."""
    spent = {digest(store_id, key) for key in keys}
    known = spent_among(connection, spent)
    if fresh := [{"digest": one} for one in spent - known]:
        connection.execute(SPENT_KEYS.insert(), fresh)


def spent_among(connection: sa.Connection, digests: Iterable[str]) -> set[str]:
    wanted, found = sorted(digests), set()
    for start in range(0, len(wanted), 500):  # databases limit the values of one query
        some = wanted[start : start + 500]
        query = sa.select(SPENT_KEYS.c.digest).where(SPENT_KEYS.c.digest.in_(some))
        found |= set(connection.scalars(query))
    return found


def markers(connection: sa.Connection, after: int) -> frozenset[str]:
    """The markers of all people who were forgotten after this number."""
    query = sa.select(EVENTS.c.user).where(EVENTS.c.number > after, EVENTS.c.item.is_(None))
    return frozenset(connection.scalars(query))


def truncate_log(engine: sa.Engine, sleep: Callable[[float], None] = time.sleep) -> None:
    """Truncate SQLite's write-ahead log, which must not keep removed rows. This is not possible
    while another connection reads, so it is tried for a moment."""
    if engine.dialect.name != "sqlite":
        return
    for _ in range(CHECKPOINTS):
        with engine.connect() as connection:
            busy, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        if not busy:
            return
        sleep(PAUSE_SECONDS)


def rewrite(engine: sa.Engine) -> None:
    """PostgreSQL keeps removed rows in a table's pages until the table is rewritten."""
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            for table in (EVENTS, SHOWN, SPENT_KEYS):
                connection.exec_driver_sql(f"VACUUM (FULL) {table.name}")
    truncate_log(engine)


def keep_no_statistics(connection: sa.Connection) -> None:
    """Otherwise PostgreSQL's planner would store frequent ids in a table of its own, which we could
    not clean."""
    if connection.dialect.name == "postgresql":
        for table, column in (("events", "user"), ("events", "key"), ("shown", "user")):
            connection.exec_driver_sql(
                f'ALTER TABLE {table} ALTER COLUMN "{column}" SET STATISTICS 0'
            )
