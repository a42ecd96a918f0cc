"""What a column of times counts in. Moments are kept as microseconds since 1970."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions
from ltocf.errors import DataError

# Times of a data set: moments, in microseconds since 1970; or numbers that tell only an order,
# such as 1, 2, 3, either whole or with fractions, which are then kept in millionths.
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
    """What a number of this size counts, if it is a moment since 1973; else a plain number."""
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
