"""The tables of an event store, and the classes of their rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

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
    sa.Index("events_of_pair", "user", "item", "number"),
)
# Digests of the keys of forgotten events, so that a redelivered one is not new.
SPENT_KEYS = sa.Table("spent_keys", tables, sa.Column("digest", sa.Text, primary_key=True))
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
# Who took part in an experiment. Rows of a person who is forgotten are removed.
PARTICIPANTS = sa.Table(
    "experiment_people",
    tables,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("arm", sa.Text, nullable=False),
    sa.Column("exposed", sa.BigInteger),  # when they got their first list, in microseconds
    sa.Column("shown", sa.Text),  # the items of that list
    sa.Column("hit", sa.Integer),  # was their first item among the first 20 of their arm?
    sa.Column("shadow_hit", sa.Integer),  # and of the model in the shadow?
    sa.Column("converted", sa.Integer),  # did they take something that they were shown?
    sa.Index("experiment_outcomes", "experiment", "arm"),
)
# Changes of items since training; see items.py.
ITEMS = sa.Table(
    "items",
    tables,
    sa.Column("item", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),  # of its last change, in order
    sa.Column("first", sa.BigInteger, nullable=False),  # of its first one
    sa.Column("time", sa.BigInteger, nullable=False),  # of the last, in microseconds
    sa.Column("attributes", sa.Text, nullable=False),  # a JSON object
    # 1: these are all attributes; 0: they change some.
    sa.Column("whole", sa.Integer, nullable=False),
    sa.Column("hidden", sa.Integer, nullable=False),
    sa.Index("items_by_number", "number"),
)
# What people were shown. Rows of a person who is forgotten are removed.
SHOWN = sa.Table(
    "shown",
    tables,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("item", sa.Text, primary_key=True),
    sa.Column("times", sa.BigInteger, nullable=False),
    sa.Column("time", sa.BigInteger, nullable=False),  # the last, in microseconds
    sa.Column("model", sa.Text, nullable=False),  # whose list it was in
    # Whether the person touched the item after that.
    sa.Column("taken", sa.Integer, nullable=False),
    sa.Index("shown_by_model", "model", "taken"),
)
COLUMNS = [EVENTS.c[name] for name in ("user", "item", "time", "kind", "key", "number")]


@dataclass(frozen=True)
class Event:
    """A person touched an item. A row without an item marks that everything before it is
    forgotten."""

    user: str
    item: str | None
    time: int  # microseconds since 1970
    kind: str | None = None
    key: str | None = None  # an event with the same key is the same event
    number: int = 0  # given by the store


class Quality(NamedTuple):
    """How well a model's lists matched the events of an hour."""

    model: str
    hour: int  # since 1970
    events: int
    hits: int  # among the first 20
    reciprocal: float  # the sum of 1 / rank


def now() -> int:
    """In microseconds since 1970."""
    return time.time_ns() // 1000
