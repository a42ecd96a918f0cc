"""Who took part in an experiment, what they were shown first, and whether they took it: one row per
person.

Rows are removed with the person who asks to be forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from ltocf.service.experiments.verdicts import Counts
from ltocf.service.store.databases import exclusive, insert_into
from ltocf.service.store.events import EventStore
from ltocf.service.store.tables import PARTICIPANTS as PEOPLE


class Exposure(NamedTuple):
    user: str
    arm: str
    time: int
    items: Sequence[str]


class ArmCounts(NamedTuple):
    people: int  # people who got a list
    hits: Counts
    conversions: Counts  # of those whose window has closed


def log_exposures(store: EventStore, experiment: str, exposures: Iterable[Exposure]) -> None:
    """Keep the first list of each person; later ones change nothing."""
    rows = [
        {
            "experiment": experiment,
            "user": one.user,
            "arm": one.arm,
            "exposed": one.time,
            "shown": json.dumps(list(one.items)),
        }
        for one in exposures
    ]
    if not rows:
        return
    insert = insert_into(PEOPLE, store.engine.dialect)
    first = {
        name: sa.func.coalesce(PEOPLE.c[name], insert.excluded[name])
        for name in ("exposed", "shown")
    }
    query = insert.on_conflict_do_update(index_elements=["experiment", "user"], set_=first)
    with exclusive(store.engine) as connection:
        connection.execute(query, rows)


def log_hits(
    store: EventStore, experiment: str, column: str, hits: Mapping[tuple[str, str], bool]
) -> None:
    """Whether (user, arm)'s event was a hit, by the arm (`hit`) or in the shadow (`shadow_hit`).
    Only the first event of each person counts."""
    rows = [
        {"experiment": experiment, "user": user, "arm": arm, column: int(hit)}
        for (user, arm), hit in hits.items()
    ]
    if not rows:
        return
    insert = insert_into(PEOPLE, store.engine.dialect)
    first = {column: sa.func.coalesce(PEOPLE.c[column], insert.excluded[column])}
    query = insert.on_conflict_do_update(index_elements=["experiment", "user"], set_=first)
    with exclusive(store.engine) as connection:
        connection.execute(query, rows)


def log_events(
    store: EventStore, experiment: str, taken: Iterable[tuple[str, str, int]], window: int
) -> None:
    """(user, item, arrival) of new events: a person who took something from their first list within
    the window has converted."""
    by_user: dict[str, list[tuple[str, int]]] = {}
    for user, item, moment in taken:
        by_user.setdefault(user, []).append((item, moment))
    if not by_user:
        return
    own = PEOPLE.c.experiment == experiment
    query = sa.select(PEOPLE.c.user, PEOPLE.c.exposed, PEOPLE.c.shown)
    query = query.where(own, PEOPLE.c.converted.is_(None), PEOPLE.c.exposed.is_not(None))
    with exclusive(store.engine) as connection:
        rows = connection.execute(query.where(PEOPLE.c.user.in_(list(by_user)))).all()
        converted = [
            user
            for user, exposed, shown in rows
            if any(
                exposed <= moment <= exposed + window and item in json.loads(shown)
                for item, moment in by_user[user]
            )
        ]
        if converted:
            change = PEOPLE.update().where(own, PEOPLE.c.user.in_(converted))
            connection.execute(change.values(converted=1))


def close_windows(store: EventStore, experiment: str, before: int) -> None:
    """Count people as not converted if they got their list before this moment and took nothing from
    it."""
    change = PEOPLE.update().where(
        PEOPLE.c.experiment == experiment, PEOPLE.c.converted.is_(None), PEOPLE.c.exposed < before
    )
    with exclusive(store.engine) as connection:
        connection.execute(change.values(converted=0))


def arm_counts(store: EventStore, experiment: str, before: int) -> dict[str, ArmCounts]:
    """What came of each arm's people. Conversions are of those who got their list before this
    moment, when their window closed: of the others only those who took something are known, and a
    rate of theirs would be 100 per cent."""
    count = sa.func.count
    closed = sa.case((PEOPLE.c.exposed < before, sa.func.coalesce(PEOPLE.c.converted, 0)))
    query = (
        sa.select(
            PEOPLE.c.arm,
            count(PEOPLE.c.exposed),
            count(PEOPLE.c.hit),
            sa.func.coalesce(sa.func.sum(PEOPLE.c.hit), 0),
            count(closed),
            sa.func.coalesce(sa.func.sum(closed), 0),
        )
        .where(PEOPLE.c.experiment == experiment)
        .group_by(PEOPLE.c.arm)
    )
    with store.engine.connect() as connection:
        return {
            arm: ArmCounts(people, Counts(judged, int(hits)), Counts(known, int(taken)))
            for arm, people, judged, hits, known, taken in connection.execute(query)
        }


def paired_counts(store: EventStore, experiment: str) -> tuple[int, int, int, int]:
    """The number of people with a judged event, hits of the shadow, people whom only the shown
    model hit, and people whom only the shadow hit."""
    shown, shadow = PEOPLE.c.hit, PEOPLE.c.shadow_hit
    query = sa.select(
        sa.func.count(),
        sa.func.coalesce(sa.func.sum(shadow), 0),
        sa.func.coalesce(sa.func.sum(shown * (1 - shadow)), 0),
        sa.func.coalesce(sa.func.sum(shadow * (1 - shown)), 0),
    ).where(PEOPLE.c.experiment == experiment, shown.is_not(None), shadow.is_not(None))
    with store.engine.connect() as connection:
        judged, hits, only_shown, only_shadow = connection.execute(query).one()
    return judged, int(hits), int(only_shown), int(only_shadow)
