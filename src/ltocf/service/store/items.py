"""Changes of items since training, as durable as events: one row for each item."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ltocf.data.catalogue import ItemChange
from ltocf.service.store.events import SOME, EventStore
from ltocf.service.store.tables import ITEMS, now


def change_items(
    store: EventStore,
    changes: Sequence[ItemChange],
    wanted: Callable[[], bool] = lambda: True,
    check: Callable[[Sequence[ItemChange]], None] = lambda amounts: None,
) -> None:
    """Commit all changes; the row of an item holds all of its changes combined.

    `check` is called with the combined changes while no other process can write, and refuses
    them by raising.
    """
    items = list(dict.fromkeys(str(change.item) for change in changes))
    some = [items[start : start + SOME] for start in range(0, len(items), SOME)]
    with store.writing(wanted) as connection:
        number, rows = last_change(connection), dict[str, dict[str, Any]]()
        for names in some:
            found = connection.execute(sa.select(ITEMS).where(ITEMS.c.item.in_(names)))
            rows |= {row.item: dict(row._mapping) for row in found}
        for place, change in enumerate(changes, start=1):
            item = str(change.item)
            rows[item] = _changed(rows.get(item), change, number + place)
        check([_as_change(rows[item]) for item in items])
        for names in some:
            connection.execute(ITEMS.delete().where(ITEMS.c.item.in_(names)))
        connection.execute(ITEMS.insert(), [rows[item] for item in items])


def _changed(old: dict[str, Any] | None, change: ItemChange, number: int) -> dict[str, Any]:
    attributes, whole, hidden = dict(change.attributes), change.whole, bool(change.hidden)
    if old is not None and not whole:
        attributes, whole = json.loads(old["attributes"]) | attributes, bool(old["whole"])
        hidden = bool(old["hidden"]) if change.hidden is None else hidden
    return {
        "item": str(change.item),
        "number": number,
        "first": number if old is None else old["first"],
        "time": now(),
        "attributes": json.dumps(attributes),
        "whole": int(whole),
        "hidden": int(hidden),
    }


def last_change(connection: sa.Connection) -> int:
    return connection.scalar(sa.select(sa.func.max(ITEMS.c.number))) or 0


def item_changes(store: EventStore, after: int = 0) -> tuple[list[ItemChange], int]:
    """The changes after this number, in the order in which the items came, and the last number.

    A row holds all changes of its item combined, so applying it again changes nothing.
    """
    query = sa.select(ITEMS).where(ITEMS.c.number > after).order_by(ITEMS.c.first)
    with store.engine.connect() as connection:
        rows = connection.execute(query).all()
    last = max((row.number for row in rows), default=after)
    return [_as_change(row._mapping) for row in rows], last


def _as_change(row: Mapping[Any, Any]) -> ItemChange:
    attributes = json.loads(row["attributes"])
    return ItemChange(row["item"], attributes, whole=bool(row["whole"]), hidden=bool(row["hidden"]))
