"""Chebyshev sums on the CPU: blocks of columns and ranges of rows shared out to threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from threading import Barrier, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltocf.graph.kernels.ordering import Adjacency
from ltocf.graph.kernels.product import compile_product
from ltocf.graph.kernels.recurrence import compile_kernels
from ltocf.graph.kernels.vectors import REGISTER_BYTES
from ltocf.machine.threads import run_together, share_out
from ltocf.tables import Tables

# Bytes per row: narrower blocks read the neighbours more often, and one cache line at a time.
BLOCK_BYTES = 4 * REGISTER_BYTES
RANGES = 64  # of rows: a fixed number, so that inner products do not depend on the threads
PULLS = 8  # per thread and step: a thread whose core is busy delays the others by an eighth only
TEAM_BYTES = 1 << 25  # of a block of columns: from this size on, all threads share one block
SMALL = 1 << 18  # sums of fewer terms are not worth a thread

Table = NDArray[np.floating[Any]]


def column_padding(dim: int, itemsize: int) -> int:
    """How many columns a table lacks to be made of whole registers."""
    return -dim % (REGISTER_BYTES // itemsize)


def chebyshev_sum(
    adjacency: Adjacency,
    E: Table,
    coefficients: Sequence[float],
    other: Table | None,
    out: Table,
    threads: int,
    tables: Tables,
) -> list[float]:
    """out = sum_k c_k T_k(A) E. Returns the inner products <T_k(A) E, other>, or zeros without
    `other`.

    Tables are C-contiguous, of one dtype, and lack no column padding. Each row is summed by one
    thread and the partial products are added in a fixed order: threads change only the time. What
    is needed in between is taken from `tables`.
    """
    blocks = list(_blocks(E.shape[1], E.itemsize))
    if adjacency.indptr[-1] * E.shape[1] * len(coefficients) < SMALL:
        threads = 1
    small = E.itemsize * len(E) * max(width for _, width in blocks) <= TEAM_BYTES
    teams = min(threads, len(blocks)) if small else 1
    members = min(threads // teams, RANGES)
    products = np.zeros((len(blocks), len(coefficients), RANGES))
    job = _Job(adjacency, E, coefficients, E[:0] if other is None else other, out, products)
    for width in {width for _, width in blocks}:
        compile_kernels(E.dtype.name, width)  # compile here, and not in every thread at once
    runs: list[Callable[[], None]] = []
    for team in range(teams):
        buffers = job.buffers(blocks, tables)
        shared = _Team(list(enumerate(blocks))[team::teams], buffers, Barrier(members))
        runs += [partial(job.run, shared)] * members
    run_together(runs)
    totals: list[float] = products.sum(axis=(0, 2)).tolist()
    return totals


def multiply(adjacency: Adjacency, E: Table, out: Table) -> None:
    """out = A E, read and written in place; rows are processed in the adjacency's order."""
    scale = np.empty(len(E), E.dtype)
    scale[adjacency.order] = 1 / _roots(adjacency)
    blocks = list(_blocks(E.shape[1], E.itemsize))
    kernels = [compile_product(E.dtype.name, width) for _, width in blocks]
    bounds = _ranges(adjacency, RANGES)

    def run(low: int, high: int) -> None:
        for kernel, (column, _) in zip(kernels, blocks, strict=True):
            kernel(bounds[low], bounds[high], *adjacency, scale, column, E, out)

    pull = RANGES if len(adjacency.neighbours) * E.shape[1] < SMALL else 1
    share_out(run, RANGES, pull)


def _blocks(dim: int, itemsize: int) -> Iterator[tuple[int, int]]:
    """The first column and the width of each block."""
    for column in range(0, dim, BLOCK_BYTES // itemsize):
        yield column, min(BLOCK_BYTES // itemsize, dim - column)


def _roots(adjacency: Adjacency) -> NDArray[np.float64]:
    # Without neighbours a row counts as degree 1: S is invertible and A's row still zero.
    return np.sqrt(np.maximum(np.diff(adjacency.indptr), 1))


def _ranges(adjacency: Adjacency, n: int) -> NDArray[np.int64]:
    """Bounds of n ranges of rows with about as many neighbours and rows each. (n + 1,)"""
    work = adjacency.indptr + np.arange(len(adjacency.indptr))
    return np.searchsorted(work, np.linspace(0, work[-1], n + 1))


class _Job:
    def __init__(
        self,
        adjacency: Adjacency,
        E: Table,
        coefficients: Sequence[float],
        other: Table,
        out: Table,
        products: NDArray[np.float64],
    ) -> None:
        self.adjacency, self.E, self.other, self.out = adjacency, E, other, out
        self.coefficients, self.products = coefficients, products
        self.root = _roots(adjacency).astype(E.dtype)
        self.bounds = _ranges(adjacency, RANGES)

    def buffers(self, blocks: Sequence[tuple[int, int]], tables: Tables) -> list[Table]:
        """Flat tables for current, previous, total and beside."""
        n, dtype = len(self.E) * max(width for _, width in blocks), self.E.dtype
        return [tables.empty((size,), dtype) for size in (n, n, n, n if len(self.other) else 0)]

    def run(self, team: _Team) -> None:
        """Process a member's part of the team's blocks."""
        try:
            self._run(team)
        except BaseException:  # Ctrl-C too, since one member is the caller's own thread
            team.barrier.abort()  # otherwise the others would wait for this one forever
            raise

    def _run(self, team: _Team) -> None:
        real, n = self.E.dtype.type, len(self.E)
        indptr, neighbours, order = self.adjacency
        for index, (column, width) in team.blocks:
            kernels = compile_kernels(self.E.dtype.name, width)
            current, previous, total, beside = (
                flat[: n * width].reshape(-1, width) for flat in team.buffers
            )
            for k, coefficient in enumerate(self.coefficients):
                weight = real(coefficient)
                alpha, beta = (real(1), real(0)) if k == 1 else (real(2), real(1))
                for low, high in team.pull((index, k)):
                    rows, products = self.bounds[low : high + 1], self.products[index, k, low:high]
                    if k == 0:
                        kernels.start(
                            rows, order, self.root, self.E, self.other, column, weight, current,
                            previous, total, beside, products,
                        )  # fmt: skip
                    else:
                        kernels.step(
                            rows, self.root, indptr, neighbours, alpha, beta, weight, current,
                            previous, total, beside, products,
                        )  # fmt: skip
                if k:
                    current, previous = previous, current
                team.barrier.wait()
            for low, high in team.pull((index, -1)):
                kernels.finish(self.bounds[low : high + 1], order, column, total, self.out)
            team.barrier.wait()  # the next block overwrites the buffers


class _Team:
    """Threads that share buffers: each step's ranges of rows are taken by threads that are free."""

    def __init__(
        self,
        blocks: Sequence[tuple[int, tuple[int, int]]],
        buffers: Sequence[Table],
        barrier: Barrier,
    ) -> None:
        self.blocks, self.buffers, self.barrier = blocks, buffers, barrier
        pulls = min(PULLS * barrier.parties, RANGES) if barrier.parties > 1 else 1
        self._bounds = [RANGES * pull // pulls for pull in range(pulls + 1)]
        self._steps: dict[tuple[int, int], Iterator[tuple[int, int]]] = {}
        self._lock = Lock()

    def pull(self, step: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Ranges of this step that no other member has taken."""
        with self._lock:  # so that all get the same iterator; next() on it is atomic
            return self._steps.setdefault(step, iter(list(pairwise(self._bounds))))
