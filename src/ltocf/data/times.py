"""The unit of a column of times, the moments, and the latest of them. Moments are kept as
microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions
from ltocf.errors import DataError

# Times of a data set are moments in microseconds since 1970, or numbers that only give an order,
# such as 1, 2, 3, whole or with fractions, which are then kept in millionths.
TimeForm = Literal["moments", "numbers", "fractions"]
TIME_FORMS: tuple[TimeForm, ...] = get_args(TimeForm)
Unit = Literal["seconds", "milliseconds", "microseconds", "nanoseconds", "numbers"]
UNITS: tuple[Unit, ...] = get_args(Unit)
# Each unit's moments from 1973 to 5138 lie in a range of their own.
LEAST: dict[Unit, int] = {
    "nanoseconds": 10**17,
    "microseconds": 10**14,
    "milliseconds": 10**11,
    "seconds": 10**8,
}
MILLION = 1_000_000
PER_SECOND: dict[Unit, int] = {
    "seconds": 1,
    "milliseconds": 1_000,
    "microseconds": MILLION,
    "nanoseconds": 1_000_000_000,
}
KNOWN_AS = {
    "moments": "dates or seconds since 1970",
    "numbers": "plain numbers",
    "fractions": "plain numbers with fractions",
}


def unit_of(typical: float) -> Unit:
    """The unit of a number of this size, if it is a moment since 1973; else it is a plain
    number."""
    return next((unit for unit, least in LEAST.items() if abs(typical) >= least), "numbers")


def unit_of_times(times: NDArray[np.int64] | None) -> Unit:
    return unit_of(int(times.max())) if times is not None and len(times) else "numbers"


def clock(train: Interactions) -> int:
    """How many microseconds pass between one timestamp and the next. Plain numbers count as
    seconds, so that what happens now is later than all of them."""
    per_second = PER_SECOND.get(unit_of_times(train.timestamps), 1)
    return max(MILLION // per_second, 1)


def converted(
    times: NDArray[np.int64], form: TimeForm, like: NDArray[np.int64] | None, wanted: TimeForm
) -> NDArray[np.int64]:
    """A log's times in the form of the data set's own, `like`. What cannot be compared is a
    DataError: the newest event would count as the oldest, or the other way round."""
    if form == wanted == "moments":
        per_second = PER_SECOND.get(unit_of_times(like), MILLION)
        return (
            times * (per_second // MILLION)
            if per_second >= MILLION
            else times // (MILLION // per_second)
        )
    if form == wanted:
        return times
    if (form, wanted) == ("numbers", "fractions"):
        return times * MILLION
    raise DataError(
        f"the log's times are {KNOWN_AS[form]}, but those of the data set are {KNOWN_AS[wanted]}; "
        "give the log times of the same kind, or leave its times out to count it as the latest"
    )


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
    """The current time, in UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


def present(train: Interactions) -> datetime:
    """The moment of the latest pair, which is about when the log was made; without times, the
    current time."""
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
