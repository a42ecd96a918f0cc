"""One epoch as batches, in chunks that fit the cache, which separate threads draw ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from ltocf.machine.threads import thread_count

CHUNK = 16_384  # pairs; with 64 negatives each, 8 MB
AHEAD = 8  # chunks to draw in advance, while the graph is propagating


class Batch(NamedTuple):
    """A chunk of a batch, or all of it."""

    users: Tensor  # (n,) int64
    positives: Tensor  # (n,) int64; of walks, (n, orders)
    negatives: Tensor  # (n, negatives) int64
    thresholds: Tensor | None = None  # (n,): the users' k-th largest scores, if the loss takes them


class ChunkedBatch(NamedTuple):
    """A batch: how many rows it has, and its chunks, to be used up before the next batch."""

    rows: int
    chunks: Iterator[Batch]

    @classmethod
    def of(cls, batch: Batch) -> ChunkedBatch:
        """A batch in one chunk."""
        return cls(len(batch.users), iter([batch]))

    def whole(self) -> Batch:
        """All in one, at the memory that takes."""
        parts = list(self.chunks)
        if len(parts) == 1:
            return parts[0]
        thresholds = [part.thresholds for part in parts if part.thresholds is not None]
        return Batch(
            torch.cat([part.users for part in parts]),
            torch.cat([part.positives for part in parts]),
            torch.cat([part.negatives for part in parts]),
            torch.cat(thresholds) if thresholds else None,
        )


class Batches:
    """The rows 0..n-1 of an epoch in batches; draw(start, stop) makes what stands in these rows.

    Memory does not grow with the size of a batch: what waits is a few chunks. Each is drawn by one
    thread, and as many threads draw as there are: `draw` has to release the interpreter lock.
    """

    def __init__(self, n: int, batch_size: int, draw: Callable[[int, int], Batch]) -> None:
        self.n, self.batch_size, self.draw = n, batch_size, draw

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def __iter__(self) -> Generator[ChunkedBatch]:
        drawn = self._drawn_ahead()
        try:
            for start in range(0, self.n, self.batch_size):
                rows = min(self.batch_size, self.n - start)
                yield ChunkedBatch(rows, islice(drawn, -(-rows // CHUNK)))
        finally:
            drawn.close()  # an epoch that is stopped in the middle must leave no thread behind

    def _ranges(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self.n, self.batch_size):
            last = min(first + self.batch_size, self.n)
            for start in range(first, last, CHUNK):
                yield start, min(start + CHUNK, last)

    def _drawn_ahead(self) -> Generator[Batch]:
        pool = ThreadPoolExecutor(min(thread_count(), AHEAD))
        try:
            waiting: deque[Future[Batch]] = deque()
            for rows in self._ranges():
                waiting.append(pool.submit(self.draw, *rows))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
