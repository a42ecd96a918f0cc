"""Counts how many people liked each item, adding only what is new since the last count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from ltocf.data.ingest.cells.kinds import count_of_kind
from ltocf.service.store.tables import EVENTS


def count_people(
    connection: sa.Connection,
    after: int,
    since: int,
    until: int | None,
    kinds: Mapping[str, float],
) -> dict[str, int]:
    """How many people liked each item for the first time after `after`, of the events after `since`
    until `until`; an event that takes back or hides, by `kinds`, is not a like."""
    earlier = EVENTS.alias()
    there = connection.scalars(sa.select(EVENTS.c.kind).where(EVENTS.c.number > after).distinct())
    dislikes = [kind for kind in there if count_of_kind(kind, kinds) <= 0]
    people = sa.func.count(sa.distinct(EVENTS.c.user))
    query = sa.select(EVENTS.c.item, people).group_by(EVENTS.c.item)
    query = query.where(EVENTS.c.number > since, EVENTS.c.item.is_not(None))
    if dislikes:
        query = query.where(_is_none_of(EVENTS.c.kind, dislikes))
    if until is not None:
        query = query.where(EVENTS.c.number <= until)
    if since > after:
        again = sa.exists().where(
            earlier.c.user == EVENTS.c.user,
            earlier.c.item == EVENTS.c.item,
            earlier.c.number > after,
            earlier.c.number <= since,
        )
        if dislikes:
            again = again.where(_is_none_of(earlier.c.kind, dislikes))
        query = query.where(~again)
    return {item: count for item, count in connection.execute(query)}


def _is_none_of(
    column: sa.ColumnElement[str | None], kinds: Sequence[str | None]
) -> sa.ColumnElement[bool]:
    return sa.or_(column.is_(None), column.not_in(kinds))
