"""What the times of a log mean: which moments they are, and which is the latest."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions
from ltocf.data.times import LEAST
from ltocf.data.times import clock as clock


def moments(train: Interactions) -> NDArray[np.datetime64] | None:
    """When each pair was first seen, in UTC; None if no clock was read. (n_pairs,)"""
    if train.timestamps is None or _latest(train) is None:
        return None
    return (train.timestamps * clock(train)).astype("datetime64[us]")


def _latest(train: Interactions) -> int | None:
    """The latest time of any pair, None if no clock was read."""
    times = train.timestamps
    latest = 0 if times is None or not len(times) else int(times.max())
    return latest if latest >= LEAST["seconds"] else None


def clock_now() -> datetime:
    """What time it is, in UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


def present(train: Interactions) -> datetime:
    """The moment of the latest pair, which is when the log was made; else what time it is."""
    latest = _latest(train)
    if latest is None:
        return clock_now()
    moment: datetime = np.datetime64(latest * clock(train), "us").astype(datetime)
    return moment


def first_touched(train: Interactions) -> NDArray[np.datetime64] | None:
    """When each item was first touched, NaT for never; None if no clock was read. (n_items,)"""
    times = moments(train)
    if times is None:
        return None
    first = np.full(train.n_items, np.iinfo(np.int64).max)
    np.minimum.at(first, train.items, times.astype(np.int64))
    touched: NDArray[np.datetime64] = first.astype("datetime64[us]")
    touched[train.item_degrees == 0] = np.datetime64("NaT")
    return touched
