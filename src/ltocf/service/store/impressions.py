"""What people were shown, and how often: what they never take fades from their lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ltocf.service.store.events import SOME, EventStore
from ltocf.service.store.tables import SHOWN, now

MOST = 500  # items of one person that are counted, those shown last


class Impression(NamedTuple):
    user: str
    item: str


def add_impressions(
    store: EventStore,
    shown: Sequence[Impression],
    wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Count each once more."""
    with store.writing(wanted) as connection:
        count_impressions(connection, shown)


def count_impressions(connection: sa.Connection, shown: Sequence[Impression]) -> None:
    if not shown:
        return
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(SHOWN)
    more = {"times": SHOWN.c.times + insert.excluded.times, "time": insert.excluded.time}
    query = insert.on_conflict_do_update(index_elements=["user", "item"], set_=more)
    moment = now()
    rows = [
        {"user": user, "item": item, "times": times, "time": moment}
        for (user, item), times in Counter(shown).items()
    ]
    connection.execute(query, rows)


def impressions_of(store: EventStore, users: Sequence[str]) -> dict[str, Mapping[str, int]]:
    """How often each person was shown each item; whoever was shown nothing is left out."""
    found: dict[str, dict[str, int]] = {}
    with store.engine.connect() as connection:
        for start in range(0, len(users), SOME):
            some = users[start : start + SOME]
            query = sa.select(SHOWN).where(SHOWN.c.user.in_(some)).order_by(SHOWN.c.time.desc())
            for row in connection.execute(query):
                theirs = found.setdefault(row.user, {})
                if len(theirs) < MOST:
                    theirs[row.item] = row.times
    return dict(found)
