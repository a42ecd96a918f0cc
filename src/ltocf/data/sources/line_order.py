"""Whether lines of `user item item ...` list items in the order of time, found in the lines alone.

In published sets some do and some do not. An order of time shows in two ways: neighbours in a line
co-occur more often than items far apart, and items appear at some time, so that an item that is
late in some people's lines is late in others'. If items are in the same order in every line, the
lines are sorted by something about the items, which is not time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions

LONG = 8  # items in a line that is long enough to be used
FEWEST_LINES = 100
FEWEST_PEOPLE = 5  # people in each half who must have an item, for its mean place to count
SAMPLED = 4000  # neighbours
SORTED, FIXED = 0.05, 0.9
# Least excess over chance; published sets in the order of time have .06 and .14.
NEIGHBOURS, PLACES = 0.03, 0.1
SURE = 3.0  # standard errors


class LineOrder(NamedTuple):
    ordered: bool
    reason: str


def find_order(lines: Interactions) -> LineOrder:
    """`lines` have the places of their items as times. What test holds is never looked at."""
    assert lines.timestamps is not None
    order = np.lexsort((lines.timestamps, lines.users))
    items = lines.items[order]  # line by line, as they stand there
    lengths = lines.user_degrees
    long = np.flatnonzero(lengths >= LONG)
    if len(long) < FEWEST_LINES:
        return LineOrder(False, f"fewer than {FEWEST_LINES} lines of {LONG} items")
    ascending = _share_sorted(lines.timestamps, lines.indptr, long)
    if ascending > SORTED:
        return LineOrder(False, f"{ascending:.0%} of the lines are sorted by id")
    places, known = _agreement_of_places(items, lines.users[order], lines.indptr, lines.n_items)
    if places > FIXED:
        return LineOrder(False, f"items stand in one order in all lines (correlation {places:.2f})")
    near = _share_of_near_neighbours(lines, items, long)
    found = f"neighbours go together in {near:.0%} of comparisons, places agree by {places:.2f}"
    compared = min(len(long), SAMPLED)
    together = near - 0.5 > max(NEIGHBOURS, SURE * 0.5 / compared**0.5)
    begins = places > max(PLACES, SURE / max(known, 1) ** 0.5)
    return LineOrder(together or begins, found)


def _share_sorted(
    places: NDArray[np.int64], indptr: NDArray[np.int64], long: NDArray[np.int64]
) -> float:
    """The share of long lines that are sorted by item. A user's pairs ascend by item, so in such a
    line the places rise or fall."""
    inside = np.ones(len(places), dtype=bool)
    # The first item of a line has no predecessor.
    inside[indptr[:-1][indptr[:-1] < len(places)]] = False
    rises = np.diff(places, prepend=places[:1]) > 0
    counts = np.add.reduceat(np.append(rises & inside, False), indptr[:-1])[long]
    steps = np.diff(indptr)[long] - 1
    return float(np.mean((counts == steps) | (counts == 0)))


def _agreement_of_places(
    items: NDArray[np.int32], users: NDArray[np.int32], indptr: NDArray[np.int64], n_items: int
) -> tuple[float, int]:
    """The correlation between items' mean places in the lines of two halves of the people, and of
    how many items."""
    place = (np.arange(len(items)) - indptr[users] + 0.5) / np.diff(indptr)[users]
    half = np.random.default_rng(0).integers(0, 2, int(users.max()) + 1)[users].astype(bool)
    means, counts = [], []
    for chosen in (half, ~half):
        count = np.bincount(items[chosen], minlength=n_items)
        total = np.bincount(items[chosen], place[chosen], minlength=n_items)
        means.append(total / np.maximum(count, 1))
        counts.append(count)
    known = np.minimum(*counts) >= FEWEST_PEOPLE
    if known.sum() < FEWEST_LINES or min(np.std(mean[known]) for mean in means) == 0:
        return 0.0, 0
    return float(np.corrcoef(means[0][known], means[1][known])[0, 1]), int(known.sum())


def _share_of_near_neighbours(
    lines: Interactions, items: NDArray[np.int32], long: NDArray[np.int64]
) -> float:
    """How often an item has more in common with its neighbour than with one a third of the line
    away or more."""
    random = np.random.default_rng(0)
    chosen = random.choice(long, min(len(long), SAMPLED), replace=False)
    starts, lengths = lines.indptr[chosen], lines.user_degrees[chosen]
    first = (random.random(len(chosen)) * (lengths - 1)).astype(np.int64)
    away = np.maximum(lengths // 3, 2)
    far = (first + away + (random.random(len(chosen)) * (lengths - 2 * away))) % lengths
    here, near, other = (
        items[starts + place] for place in (first, first + 1, far.astype(np.int64))
    )
    from scipy.sparse import csr_array, diags_array

    ones = np.ones(len(lines), np.float32)
    people = csr_array((ones, lines.items, lines.indptr), shape=(lines.n_users, lines.n_items)).T
    scale = 1 / np.sqrt(np.maximum(lines.item_degrees, 1))
    rows = csr_array(diags_array(scale) @ people)
    likeness = [
        np.asarray(rows[here].multiply(rows[others]).sum(axis=1)).ravel()
        for others in (near, other)
    ]
    return float(np.mean(likeness[0] > likeness[1]) + 0.5 * np.mean(likeness[0] == likeness[1]))
