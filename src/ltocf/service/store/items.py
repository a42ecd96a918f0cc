"""What became known of items since training, as durable as events: one row for each item."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from ltocf.data.catalogue import ItemChange
from ltocf.service.store.events import EventStore
from ltocf.service.store.tables import ITEMS, now


def change_items(
    store: EventStore, changes: Sequence[ItemChange], wanted: Callable[[], bool] = lambda: True
) -> None:
    """Commit them all; a row holds what all changes of its item amount to."""
    with store.writing(wanted) as connection:
        number = last_change(connection)
        for change in changes:
            number += 1
            _change(connection, change, number)


def _change(connection: sa.Connection, change: ItemChange, number: int) -> None:
    item = str(change.item)
    old = connection.execute(sa.select(ITEMS).where(ITEMS.c.item == item)).first()
    attributes, whole, first = dict(change.attributes), change.whole, number
    hidden = bool(change.hidden)
    if old is not None:
        first = old.first
        hidden = bool(old.hidden) if change.hidden is None and not whole else hidden
        if not whole:
            attributes, whole = json.loads(old.attributes) | attributes, bool(old.whole)
        connection.execute(ITEMS.delete().where(ITEMS.c.item == item))
    row = {
        "item": item,
        "number": number,
        "first": first,
        "time": now(),
        "attributes": json.dumps(attributes),
        "whole": int(whole),
        "hidden": int(hidden),
    }
    connection.execute(ITEMS.insert(), [row])


def last_change(connection: sa.Connection) -> int:
    return connection.scalar(sa.select(sa.func.max(ITEMS.c.number))) or 0


def item_changes(store: EventStore, after: int = 0) -> tuple[list[ItemChange], int]:
    """What changed after this number, in the order in which the items came, and the last number.

    A row is what all changes of its item amount to: applied again, it changes nothing.
    """
    query = sa.select(ITEMS).where(ITEMS.c.number > after).order_by(ITEMS.c.first)
    with store.engine.connect() as connection:
        rows = connection.execute(query).all()
    last = max((row.number for row in rows), default=after)
    return [_as_change(row) for row in rows], last


def _as_change(row: sa.Row[Any]) -> ItemChange:
    attributes = json.loads(row.attributes)
    return ItemChange(row.item, attributes, whole=bool(row.whole), hidden=bool(row.hidden))
