"""Pairs in buckets of consecutive users: in memory as one, on disk as many as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ltocf.data.interactions import Interactions
from ltocf.data.pairs.columns import Arrays, ColumnArrays, ColumnFiles, Columns, distinct, pair_keys

BUCKET_ROWS = 4_000_000
# The subsets of a data set. Of a pair that is in several, the first counts.
SUBSETS = ("train", "valid", "test", "unliked")
TRAIN, VALID, TEST, UNLIKED = range(len(SUBSETS))
LIKED = slice(TRAIN, UNLIKED)
# Pairs whose user or item is not in train. A refit on all pairs learns them too.
REST = len(SUBSETS)
LABELS = len(SUBSETS) + 1
# In 32 bits, smaller and larger weights would become 0 and infinity.
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e12
TYPES: dict[str, DTypeLike] = {"user": np.int32, "item": np.int32, "subset": np.uint8}
OPTIONAL_TYPES: dict[str, DTypeLike] = {"time": np.int64, "weight": np.float32}

Pairs = Arrays  # 'user', 'item', 'subset' and perhaps 'time' and 'weight'
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]
Repeats = Literal["sum", "max"]  # how the weights of a pair's rows become one


class PairStore:
    """A store of pairs. A bucket holds all pairs of some consecutive users, so that only little is
    in memory at a time."""

    def __init__(self, buckets: list[Columns], n_users: int, n_items: int, *, timed: bool) -> None:
        self._buckets = buckets
        self.n_users, self.n_items, self.timed = n_users, n_items, timed
        self._degrees: tuple[Counts, Counts] | None = None

    @classmethod
    def in_memory(cls, pairs: Interactions) -> PairStore:
        """All pairs, as train, in the order of the interactions."""
        subset = np.full(len(pairs), TRAIN, dtype=np.uint8)
        columns: Pairs = {"user": pairs.users, "item": pairs.items, "subset": subset}
        if pairs.timestamps is not None:
            columns["time"] = pairs.timestamps
        if pairs.weights is not None:
            columns["weight"] = pairs.weights
        timed = "time" in columns
        return cls([ColumnArrays(columns)], pairs.n_users, pairs.n_items, timed=timed)

    @classmethod
    def on_disk(
        cls,
        directory: Path,
        user_counts: Counts,
        n_items: int,
        chunks: Iterable[Pairs],
        optional: Iterable[str] = (),
    ) -> PairStore:
        """Files in `directory`, filled with the chunks; `optional` are their other columns."""
        total = int(user_counts.sum())
        wanted = max(-(-total // BUCKET_ROWS), 1)
        bucket_of_user = ((np.cumsum(user_counts) - 1) * wanted // max(total, 1)).astype(np.int32)
        types = TYPES | {name: OPTIONAL_TYPES[name] for name in optional}
        buckets: list[Columns] = [
            ColumnFiles(directory / f"bucket-{number}", types) for number in range(wanted)
        ]
        for chunk in chunks:
            bucket_of_pair = bucket_of_user[chunk["user"]]
            if wanted > 1:
                chunk = take(chunk, np.argsort(bucket_of_pair, kind="stable"))
            ends = np.cumsum(np.bincount(bucket_of_pair, minlength=wanted))
            for bucket, start, end in zip(buckets, [0, *ends], ends, strict=False):
                bucket.append(take(chunk, slice(start, end)))
        return cls(buckets, len(user_counts), n_items, timed="time" in types)

    def __len__(self) -> int:
        """The number of pairs."""
        return sum(len(bucket) for bucket in self._buckets)

    def read(self, *names: str) -> Iterator[Pairs]:
        """The buckets, in order of their users, with the named columns or all."""
        return (bucket.read(names) for bucket in self._buckets)

    def rewrite(self, change: Callable[[Pairs], Pairs], at_once: int = 1) -> int:
        """Replace each bucket by `change` of it; returns how many liked pairs fewer they hold.
        With `at_once`, so many are in memory at a time, each changed by a thread of its own."""
        before, self._degrees = self.count_liked(), None
        if at_once == 1:
            for bucket in self._buckets:
                bucket.replace(change(bucket.read()))
        else:
            with ThreadPoolExecutor(at_once) as pool:
                jobs = (lambda some: some.replace(change(some.read())), self._buckets)
                for _ in pool.map(*jobs):  # raises the error of each, if there is one
                    pass
        return before - self.count_liked()

    def relabel(self, change: Callable[[Pairs], NDArray[np.uint8]]) -> None:
        """Give each bucket's pairs the subsets that `change` returns."""
        self._degrees = None
        for bucket in self._buckets:
            bucket.replace({"subset": change(bucket.read())})

    def degrees(self) -> tuple[Counts, Counts]:
        """How many pairs each user and each item has in each subset, and in the rest: (5, n)."""
        if self._degrees is None:
            users = np.zeros(LABELS * self.n_users, dtype=np.int64)
            items = np.zeros(LABELS * self.n_items, dtype=np.int64)
            for pairs in self.read("user", "item", "subset"):
                subset = pairs["subset"].astype(np.int64)
                users += np.bincount(subset * self.n_users + pairs["user"], minlength=len(users))
                items += np.bincount(subset * self.n_items + pairs["item"], minlength=len(items))
            self._degrees = users.reshape(LABELS, -1), items.reshape(LABELS, -1)
        return self._degrees

    def liked_degrees(self) -> tuple[Counts, Counts]:
        """How many pairs each user and each item has that are not in `unliked`."""
        users, items = (degrees[LIKED].sum(axis=0) for degrees in self.degrees())
        return users, items

    def count_liked(self) -> int:
        return int(self.liked_degrees()[0].sum())

    def earliest(self, count: int) -> int:
        """The time up to which `count` liked pairs lie, or more if several share it."""
        spans = [
            (int(times.min()), int(times.max())) for times in self._liked_times() if len(times)
        ]
        low, high = min(low for low, _ in spans), max(high for _, high in spans)
        while low < high:
            width = (high - low) // 65_536 + 1
            reached = np.cumsum(self._tally(low, high, width))
            slot = int(np.searchsorted(reached, count))
            count -= int(reached[slot - 1]) if slot else 0
            low, high = low + slot * width, min(low + (slot + 1) * width - 1, high)
        return low

    def _liked_times(self) -> Iterator[NDArray[np.int64]]:
        return (pairs["time"][pairs["subset"] < UNLIKED] for pairs in self.read("time", "subset"))

    def _tally(self, low: int, high: int, width: int) -> Counts:
        """How many times lie in each of 65,536 slots of `width` from `low` to `high`."""
        tally = np.zeros(65_536, dtype=np.int64)
        for all_times in self._liked_times():
            times = all_times[(all_times >= low) & (all_times <= high)]
            # Unsigned, as the difference of two 64-bit times may not fit a signed one.
            offsets = times.astype(np.uint64) - np.array(low).astype(np.uint64)
            tally += np.bincount((offsets // np.uint64(width)).astype(np.int64), minlength=65_536)
        return tally


def take(pairs: Pairs, which: Any) -> Pairs:
    """The pairs at an index, a mask or a slice."""
    return {name: column[which] for name, column in pairs.items()}


def merge_repeats(pairs: Pairs, n_items: int, repeats: Repeats = "sum") -> Pairs:
    """Sorted by user and item, each pair once, at its first time and with one weight.

    A pair is in the first of the subsets that it was in, and only its rows of that subset count. A
    pair that was taken back has a weight of 0 or less, and minus infinity if it is hidden.
    """
    pair = pair_keys(pairs["user"], pairs["item"], n_items)
    order, first = distinct(pair * len(SUBSETS) + pairs["subset"])
    if not len(first):
        return pairs
    merged = {name: pairs[name][order[first]] for name in ("user", "item", "subset")}
    if "time" in pairs:
        merged["time"] = np.minimum.reduceat(pairs["time"][order], first)
    if "weight" in pairs:
        merged["weight"] = _joined_weights(pairs["weight"][order], first, repeats)
    return take(merged, np.diff(pair[order[first]], prepend=-1) > 0)


def _joined_weights(
    weights: NDArray[np.float32], first: NDArray[np.int64], repeats: Repeats
) -> NDArray[np.float32]:
    exact = weights.astype(np.float64)
    total, gross = np.add.reduceat(exact, first), np.add.reduceat(np.abs(exact), first)
    joined = total if repeats == "sum" else np.maximum.reduceat(exact, first)
    # 0.1 three times less 0.3 is not quite 0, as the weights are kept in 32 bits.
    gone = total <= 1e-6 * gross
    return np.where(gone, np.minimum(total, 0), joined).astype(np.float32)


def settle(pairs: Pairs) -> Pairs:
    """The pairs without those that were taken back; hidden pairs become `unliked`."""
    if "weight" not in pairs:
        return pairs
    hidden = np.isneginf(pairs["weight"])
    pairs["subset"][hidden], pairs["weight"][hidden] = UNLIKED, 1
    return take(pairs, pairs["weight"] > 0)
