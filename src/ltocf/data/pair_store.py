"""Pairs on disk, in buckets of consecutive users: as many as there are, little memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.interactions import RowDigest, Rows, distinct

BUCKET_ROWS = 4_000_000
TRAIN, VALID, TEST = 0, 1, 2

Pairs = NDArray[np.void]
Mask = NDArray[np.bool_]


def pair_type(*, timed: bool) -> np.dtype[np.void]:
    """A pair on disk: rows of user and item, the part of the split, and the time if any."""
    fields = [("user", "<i4"), ("item", "<i4"), ("part", "u1")]
    return np.dtype([*fields, ("time", "<i8")] if timed else fields)


class PairStore:
    """Files of pairs in `directory`: a bucket holds all pairs of some consecutive users."""

    def __init__(
        self,
        directory: Path,
        user_counts: NDArray[np.int64],
        n_items: int,
        dtype: np.dtype[np.void],
    ) -> None:
        self.n_users, self.n_items = len(user_counts), n_items
        self.dtype = dtype
        self.timed = "time" in (dtype.names or ())
        wanted = max(-(-int(user_counts.sum()) // BUCKET_ROWS), 1)
        self._bucket_of_user = (
            (np.cumsum(user_counts) - 1) * wanted // max(int(user_counts.sum()), 1)
        ).astype(np.int32)
        self._paths = [directory / f"bucket-{bucket}" for bucket in range(wanted)]

    def __len__(self) -> int:
        """The number of buckets."""
        return len(self._paths)

    def __iter__(self) -> Iterator[Pairs]:
        """The buckets, in order of their users."""
        return (np.fromfile(path, dtype=self.dtype) for path in self._paths)

    def fill(self, chunks: Iterable[Pairs]) -> None:
        """Put each chunk's pairs into their buckets."""
        files = [path.open("wb") for path in self._paths]
        try:
            for chunk in chunks:
                buckets = self._bucket_of_user[chunk["user"]]
                chunk = chunk[np.argsort(buckets, kind="stable")]
                ends = np.cumsum(np.bincount(buckets, minlength=len(files)))
                for file, pairs in zip(files, np.split(chunk, ends[:-1]), strict=True):
                    file.write(pairs.tobytes())
        finally:
            for file in files:
                file.close()

    def rewrite(self, change: Callable[[Pairs], Pairs]) -> int:
        """Replace each bucket by `change` of it; returns by how many pairs it shrank."""
        shrunk = 0
        for path, pairs in zip(self._paths, self, strict=True):
            changed = change(pairs)
            shrunk += len(pairs) - len(changed)
            path.write_bytes(changed.tobytes())
        return shrunk

    def count(self) -> int:
        return sum(path.stat().st_size for path in self._paths) // self.dtype.itemsize

    def degrees(self, part: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many pairs each user and each item has, in all or in one part of the split."""
        users, items = np.zeros(self.n_users, np.int64), np.zeros(self.n_items, np.int64)
        for pairs in self:
            chosen = pairs if part is None else pairs[pairs["part"] == part]
            users += np.bincount(chosen["user"], minlength=self.n_users)
            items += np.bincount(chosen["item"], minlength=self.n_items)
        return users, items

    def earliest(self, count: int) -> int:
        """The time up to which `count` pairs lie, or more if several share it."""
        low = min(int(pairs["time"].min()) for pairs in self if len(pairs))
        high = max(int(pairs["time"].max()) for pairs in self if len(pairs))
        while low < high:
            width = (high - low) // 65_536 + 1
            tally = np.zeros(65_536, np.int64)
            for pairs in self:
                times = pairs["time"][(pairs["time"] >= low) & (pairs["time"] <= high)]
                # Unsigned, as the difference of two 64-bit times may not fit a signed one.
                offsets = times.astype(np.uint64) - np.array(low).astype(np.uint64)
                slots = (offsets // np.uint64(width)).astype(np.int64)
                tally += np.bincount(slots, minlength=65_536)
            reached = np.cumsum(tally)
            slot = int(np.searchsorted(reached, count))
            count -= int(reached[slot - 1]) if slot else 0
            low, high = low + slot * width, min(low + (slot + 1) * width - 1, high)
        return low

    def write(self, part: int, path: Path, user_rows: Rows, item_rows: Rows) -> RowDigest:
        """Write one part as Parquet, its rows renumbered; nothing if it is empty."""
        digest, pieces = RowDigest(), []
        for bucket, pairs in enumerate(self):
            chosen = pairs[pairs["part"] == part]
            columns = {"user": user_rows[chosen["user"]], "item": item_rows[chosen["item"]]}
            digest.update(columns["user"], columns["item"])
            if self.timed:
                columns["time"] = np.ascontiguousarray(chosen["time"])
            pieces.append(self._paths[bucket].with_suffix(".parquet"))
            pl.DataFrame(columns).write_parquet(pieces[-1], compression="uncompressed")
        if digest.length:
            pl.scan_parquet(pieces, glob=False).sink_parquet(
                path, compression_level=1, engine="streaming"
            )
        for piece in pieces:
            piece.unlink()
        return digest


def merge_repeats(pairs: Pairs, n_items: int) -> Pairs:
    """Sorted by user and item, each pair once, at its first time."""
    key = pairs["user"].astype(np.int64) * n_items + pairs["item"]
    order, first = distinct(key)
    merged = pairs[order[first]]
    if "time" in (pairs.dtype.names or ()) and len(pairs):
        merged["time"] = np.minimum.reduceat(pairs["time"][order], first)
    return merged
