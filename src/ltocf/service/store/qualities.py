"""The live quality of each model's lists, by the hour."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from ltocf.service.store.databases import insert_into
from ltocf.service.store.tables import QUALITY, Quality


def add_qualities(connection: sa.Connection, qualities: Sequence[Quality]) -> None:
    """Add to the quality figures of models by hour."""
    insert = insert_into(QUALITY, connection.dialect)
    sums = {
        name: QUALITY.c[name] + insert.excluded[name] for name in ("events", "hits", "reciprocal")
    }
    query = insert.on_conflict_do_update(index_elements=["model", "hour"], set_=sums)
    connection.execute(query, [quality._asdict() for quality in qualities])


def all_qualities(connection: sa.Connection) -> list[Quality]:
    query = sa.select(QUALITY).order_by(QUALITY.c.hour, QUALITY.c.model)
    return [Quality(*row) for row in connection.execute(query)]
