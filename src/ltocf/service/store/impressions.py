"""Items that people were shown, how often, and whether they took them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from ltocf.service.store.databases import insert_into
from ltocf.service.store.tables import SHOWN, now

MOST = 500  # items counted for one person: those shown last
SOME = 250  # users per query

TAKE = (
    SHOWN.update()
    .where(SHOWN.c.user == sa.bindparam("who"), SHOWN.c.item == sa.bindparam("what"))
    .values(taken=1)
)


class Impression(NamedTuple):
    user: str
    item: str
    taken: bool = False


class ShownQuality(NamedTuple):
    """How many of the items shown in a model's lists people took; each item counts once per
    person."""

    model: str
    shown: int
    taken: int


def count_impressions(connection: sa.Connection, model: str, shown: Iterable[Impression]) -> None:
    """Count each of these once more."""
    insert = insert_into(SHOWN, connection.dialect)
    more = {
        "times": SHOWN.c.times + insert.excluded.times,
        "time": insert.excluded.time,
        "model": insert.excluded.model,
        "taken": sa.case((SHOWN.c.taken > 0, 1), else_=insert.excluded.taken),
    }
    query = insert.on_conflict_do_update(index_elements=["user", "item"], set_=more)
    moment = now()
    some = list(shown)
    times = Counter((one.user, one.item) for one in some)
    taken = {(one.user, one.item) for one in some if one.taken}
    rows = [
        {
            "user": user,
            "item": item,
            "times": count,
            "time": moment,
            "model": model,
            "taken": int((user, item) in taken),
        }
        for (user, item), count in times.items()
    ]
    if rows:
        connection.execute(query, rows)


def mark_taken(connection: sa.Connection, events: Iterable[Mapping[str, Any]]) -> None:
    """Mark items as taken that a person was shown and has now touched."""
    taken = [
        {"who": event["user"], "what": event["item"]}
        for event in events
        if event["item"] is not None
    ]
    if taken:
        connection.execute(TAKE, taken)


def shown_in_vain(connection: sa.Connection, users: Sequence[str]) -> dict[str, dict[str, int]]:
    """How often each person was shown each item that they did not take; people who took all are
    left out."""
    found: dict[str, dict[str, int]] = {}
    for start in range(0, len(users), SOME):
        some = users[start : start + SOME]
        query = sa.select(SHOWN).where(SHOWN.c.user.in_(some), SHOWN.c.taken == 0)
        for row in connection.execute(query.order_by(SHOWN.c.time.desc())):
            theirs = found.setdefault(row.user, {})
            if len(theirs) < MOST:
                theirs[row.item] = row.times
    return found


def shown_qualities(connection: sa.Connection) -> list[ShownQuality]:
    query = sa.select(SHOWN.c.model, sa.func.count(), sa.func.sum(SHOWN.c.taken))
    rows = connection.execute(query.group_by(SHOWN.c.model).order_by(SHOWN.c.model))
    return [ShownQuality(model, int(shown), int(taken)) for model, shown, taken in rows]
