"""Pairs on disk, in buckets of consecutive users: as many as there are, little memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.ingest.column_files import ColumnFiles, Columns
from ltocf.data.interactions import RowDigest, Rows, distinct

BUCKET_ROWS = 4_000_000
TRAIN, VALID, TEST = 0, 1, 2
PAIR = {"user": np.int32, "item": np.int32, "part": np.uint8}
TIMED_PAIR = {**PAIR, "time": np.int64}

Pairs = Columns  # 'user', 'item', 'part' and perhaps 'time'
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]


class PairStore:
    """Files of pairs in `directory`: a bucket holds all pairs of some consecutive users."""

    def __init__(self, directory: Path, user_counts: Counts, n_items: int, *, timed: bool) -> None:
        self.n_users, self.n_items, self.timed = len(user_counts), n_items, timed
        total = int(user_counts.sum())
        wanted = max(-(-total // BUCKET_ROWS), 1)
        bucket_of_user = (np.cumsum(user_counts) - 1) * wanted // max(total, 1)
        self._bucket_of_user = bucket_of_user.astype(np.int32)
        types = TIMED_PAIR if timed else PAIR
        self._buckets = [ColumnFiles(directory / f"bucket-{b}", types) for b in range(wanted)]
        self._directory = directory
        self._degrees: tuple[Counts, Counts] | None = None

    def __len__(self) -> int:
        """The number of pairs."""
        return sum(len(bucket) for bucket in self._buckets)

    def read(self, *names: str) -> Iterator[Pairs]:
        """The buckets, in order of their users, with the named columns or all."""
        return (bucket.read(names) for bucket in self._buckets)

    def fill(self, chunks: Iterable[Pairs]) -> None:
        """Put each chunk's pairs into their buckets, all as train."""
        for chunk in chunks:
            chunk["part"] = np.zeros(len(chunk["user"]), dtype=np.uint8)
            buckets = self._bucket_of_user[chunk["user"]]
            if len(self._buckets) > 1:
                chunk = take(chunk, np.argsort(buckets, kind="stable"))
            ends = np.cumsum(np.bincount(buckets, minlength=len(self._buckets)))
            for bucket, start, end in zip(self._buckets, [0, *ends], ends, strict=False):
                bucket.append(take(chunk, slice(start, end)))

    def rewrite(self, change: Callable[[Pairs], Pairs]) -> int:
        """Replace each bucket by `change` of it; returns by how many pairs they shrank."""
        before, self._degrees = len(self), None
        for bucket in self._buckets:
            bucket.replace(change(bucket.read()))
        return before - len(self)

    def relabel(self, change: Callable[[Pairs], NDArray[np.uint8]]) -> None:
        """Give each bucket's pairs the parts that `change` returns."""
        self._degrees = None
        for bucket in self._buckets:
            bucket.replace({"part": change(bucket.read())})

    def degrees(self) -> tuple[Counts, Counts]:
        """How many pairs each user and each item has in each part: (3, n_users), (3, n_items)."""
        if self._degrees is None:
            users = np.zeros(3 * self.n_users, dtype=np.int64)
            items = np.zeros(3 * self.n_items, dtype=np.int64)
            for pairs in self.read("user", "item", "part"):
                part = pairs["part"].astype(np.int64)
                users += np.bincount(part * self.n_users + pairs["user"], minlength=len(users))
                items += np.bincount(part * self.n_items + pairs["item"], minlength=len(items))
            self._degrees = users.reshape(3, -1), items.reshape(3, -1)
        return self._degrees

    def earliest(self, count: int) -> int:
        """The time up to which `count` pairs lie, or more if several share it."""
        spans = [
            (int(times.min()), int(times.max()))
            for times in (bucket["time"] for bucket in self.read("time"))
            if len(times)
        ]
        low, high = min(low for low, _ in spans), max(high for _, high in spans)
        while low < high:
            width = (high - low) // 65_536 + 1
            reached = np.cumsum(self._tally(low, high, width))
            slot = int(np.searchsorted(reached, count))
            count -= int(reached[slot - 1]) if slot else 0
            low, high = low + slot * width, min(low + (slot + 1) * width - 1, high)
        return low

    def _tally(self, low: int, high: int, width: int) -> Counts:
        """How many times lie in each of 65,536 slots of `width` from `low` to `high`."""
        tally = np.zeros(65_536, dtype=np.int64)
        for bucket in self.read("time"):
            times = bucket["time"][(bucket["time"] >= low) & (bucket["time"] <= high)]
            # Unsigned, as the difference of two 64-bit times may not fit a signed one.
            offsets = times.astype(np.uint64) - np.array(low).astype(np.uint64)
            tally += np.bincount((offsets // np.uint64(width)).astype(np.int64), minlength=65_536)
        return tally

    def write(self, part: int, path: Path, user_rows: Rows, item_rows: Rows) -> RowDigest:
        """Write one part as Parquet, its rows renumbered; nothing if it is empty."""
        digest, pieces = RowDigest(), []
        for number, pairs in enumerate(self.read()):
            chosen = take(pairs, np.flatnonzero(pairs.pop("part") == part))
            chosen["user"], chosen["item"] = user_rows[chosen["user"]], item_rows[chosen["item"]]
            digest.update(chosen["user"], chosen["item"])
            pieces.append(self._directory / f"piece-{number}.parquet")
            pl.DataFrame(chosen).write_parquet(pieces[-1], compression="uncompressed")
        if digest.length:
            whole = pl.scan_parquet(pieces, glob=False)
            whole.sink_parquet(path, compression_level=1, engine="streaming")
        for piece in pieces:
            piece.unlink()
        return digest


def take(pairs: Pairs, which: Any) -> Pairs:
    """The pairs at an index, a mask or a slice."""
    return {name: column[which] for name, column in pairs.items()}


def merge_repeats(pairs: Pairs, n_items: int) -> Pairs:
    """Sorted by user and item, each pair once, at its first time."""
    order, first = distinct(pairs["user"].astype(np.int64) * n_items + pairs["item"])
    times = pairs.pop("time", None)
    merged = take(pairs, order[first])
    if times is not None:
        merged["time"] = np.minimum.reduceat(times[order], first) if len(first) else times
    return merged
