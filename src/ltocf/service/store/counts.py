"""How many people touched each item, without counting again what was counted."""

from __future__ import annotations

import sqlalchemy as sa

from ltocf.service.store.tables import EVENTS


def count_people(
    connection: sa.Connection, after: int, since: int, until: int | None
) -> dict[str, int]:
    """How many people touched each item for the first time after `after`, of the events after
    `since` until `until`."""
    earlier = EVENTS.alias()
    people = sa.func.count(sa.distinct(EVENTS.c.user))
    query = sa.select(EVENTS.c.item, people).group_by(EVENTS.c.item)
    query = query.where(EVENTS.c.number > since, EVENTS.c.item.is_not(None))
    if until is not None:
        query = query.where(EVENTS.c.number <= until)
    if since > after:
        again = sa.exists().where(
            earlier.c.user == EVENTS.c.user,
            earlier.c.item == EVENTS.c.item,
            earlier.c.number > after,
            earlier.c.number <= since,
        )
        query = query.where(~again)
    return {item: count for item, count in connection.execute(query)}
