"""Boards, which are the same for everybody: what is popular, trending and new.

Pure functions of touches (an item and a moment each); the shell, Python and the service call them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Rows
from ltocf.data.times import moments
from ltocf.errors import ConfigError
from ltocf.recommend.rules import Rules, Shelf
from ltocf.recommend.rules.conditions import shelf_of

BEFORE = 4  # trending: how many windows before the present one it is compared with
DOUBT = 0.05  # trending: the probability that the bound of a ratio is too high


@dataclass(frozen=True, eq=False)
class Touches:
    """Interactions without their users: an item's row and a moment each."""

    items: Rows
    moments: NDArray[np.datetime64] | None  # None: the times are unknown

    def counts(
        self, n_items: int, since: datetime | None = None, until: datetime | None = None
    ) -> NDArray[np.int64]:
        """How often each item was touched after `since` and until `until`. (n_items,)"""
        if since is None and until is None:
            return np.bincount(self.items, minlength=n_items)
        if self.moments is None:
            raise ConfigError(
                "a window needs the time of each interaction, which these data do not have; leave "
                "the window out"
            )
        within = np.ones(len(self.items), dtype=bool)
        if since is not None:
            within &= self.moments > np.datetime64(since, "us")
        if until is not None:
            within &= self.moments <= np.datetime64(until, "us")
        return np.bincount(self.items[within], minlength=n_items)


def popular(
    touches: Touches, n_items: int, now: datetime, window: timedelta | None = None
) -> NDArray[np.float64]:
    """How often each item was touched, ever or within the window. (n_items,)"""
    since = None if window is None else now - window
    return touches.counts(n_items, since).astype(np.float64)


def trending(
    touches: Touches, n_items: int, now: datetime, window: timedelta
) -> NDArray[np.float64]:
    """A lower bound of how much each item's share of all touches has grown; 0 if that is not above
    1. (n_items,)

    The ratio is the item's share within the window over its share in the `BEFORE` windows before.
    If nothing had changed, each touch of the item would be recent with the same probability as any
    other touch. Clopper and Pearson's lower bound of that probability gives the lower bound of the
    ratio. Small numbers have low bounds, so that two touches after none do not win.
    """
    start = now - window
    recent = touches.counts(n_items, start, now)
    earlier = touches.counts(n_items, start - BEFORE * window, start)
    from scipy.special import betaincinv  # slow to load, and needed only here

    quantile = betaincinv(np.maximum(recent, 1), earlier + 1, DOUBT)  # of a beta distribution
    lowest = np.where(recent > 0, quantile, 0.0)
    overall = max(int(earlier.sum()), 1) / max(int(recent.sum()), 1)
    ratio = lowest / np.maximum(1 - lowest, 1e-12) * overall
    return np.where(ratio > 1, ratio, 0.0)


def newest(shelf: Shelf, window: timedelta | None = None) -> NDArray[np.float64]:
    """When each item arrived, in seconds since 1970; 0 if before the window or not known yet."""
    arrived = shelf.arrivals()
    known = ~np.isnat(arrived) & (arrived <= np.datetime64(shelf.now, "us"))
    if window is not None:
        known &= arrived > np.datetime64(shelf.now - window, "us")
    seconds = np.where(known, arrived, np.datetime64(0, "us")).astype(np.int64) / 1e6
    return np.where(known, np.maximum(seconds, 1e-6), 0.0)


def board_values(
    kind: str, touches: Touches, shelf: Shelf, window: timedelta | None
) -> NDArray[np.float64]:
    """The values that a board is ordered by, 0 for items that are not on it. (n_items,)"""
    if kind == "new":
        return newest(shelf, window)
    if kind == "trending":
        return trending(touches, len(shelf.catalogue), shelf.now, window or timedelta(days=7))
    return popular(touches, len(shelf.catalogue), shelf.now, window)


def top_rows(values: NDArray[np.float64], k: int, shelf: Shelf, rules: Rules | None = None) -> Rows:
    """The k best rows on a board that the rules let through; ties go to the lower row."""
    blocked = (rules or Rules()).on(shelf).blocked
    shown = values if blocked is None else np.where(blocked, 0.0, values)
    if k < 1:
        raise ConfigError(f"k = {k!r}: must be a whole number of at least 1")
    order = np.argsort(-shown, kind="stable")[:k]
    return order[shown[order] > 0].astype(np.int32)


def board(
    dataset: Dataset,
    kind: str = "popular",
    k: int = 10,
    *,
    window: timedelta | None = None,
    rules: Rules | None = None,
    now: datetime | None = None,
) -> pl.DataFrame:
    """The k items that are popular, trending or new: columns rank, item, touches (or growth, or
    arrived), and the items' attributes."""
    seen, shelf = dataset.split.seen, shelf_of(dataset, now)
    touches = Touches(seen.items, moments(seen))
    values = board_values(kind, touches, shelf, window)
    rows = top_rows(values, k, shelf, rules)
    table = pl.DataFrame(
        [
            pl.Series("rank", np.arange(1, len(rows) + 1)),
            shelf.catalogue.ids.ids[rows].rename("item"),
            figure(kind, values[rows]),
        ]
    )
    shown = shelf.catalogue.table
    if not shown.width:
        return table
    ours = {name: f"item_{name}" for name in shown.columns if name in table.columns}
    return table.hstack(shown[rows].rename(ours))


def figure(kind: str, values: NDArray[np.float64]) -> pl.Series:
    """A board's values in the form in which people read them."""
    if kind == "new":
        return pl.Series("arrived", (values * 1e6).astype(np.int64)).cast(pl.Datetime("us"))
    if kind == "trending":
        return pl.Series("growth", values)
    return pl.Series("touches", values.astype(np.int64))


def parse_window(text: str) -> timedelta:
    """'30d', '12h' or '90m'."""
    units = {"d": "days", "h": "hours", "m": "minutes"}
    number, unit = text.strip()[:-1], text.strip()[-1:].lower()
    try:
        window = timedelta(**{units[unit]: float(number)})
    except (KeyError, ValueError, OverflowError):
        window = timedelta(0)
    if window <= timedelta(0):
        raise ConfigError(f"cannot read the window {text!r}; write 30d, 12h or 90m")
    return window
