"""An order of the nodes that keeps those with common neighbours near each other in memory.

A node's step reads the rows of its neighbours. When similar nodes are processed one after the other
they read the same rows, which are then still in cache: a fifth to a third less time on Gowalla and
Yelp2018, and the same result.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from ltocf.graph.kernels.recurrence import compile_kernels

PROBES = 16  # random vectors, as many as fill a register
SMOOTHINGS = 4
SIGNS = 8  # probes whose signs tell groups of nodes apart


class Adjacency(NamedTuple):
    """The neighbours of row r are neighbours[indptr[r]:indptr[r + 1]]; r is node order[r]."""

    indptr: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    order: NDArray[np.int32]

    @classmethod
    def natural(cls, indptr: NDArray[np.int64], neighbours: NDArray[np.int32]) -> Adjacency:
        return cls(indptr, neighbours, np.arange(len(indptr) - 1, dtype=np.int32))

    def reordered(self, order: NDArray[np.integer]) -> Adjacency:
        """The same graph with its rows in this order. A row keeps the order of its neighbours, so
        that its sum stays the same to the last bit."""
        degrees = np.diff(self.indptr)[order]
        indptr = np.concatenate([[0], np.cumsum(degrees)])
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        neighbours = np.empty_like(self.neighbours)
        _fill(self.indptr, self.neighbours, order, place, indptr, neighbours)
        return Adjacency(indptr, neighbours, self.order[order])


@numba.njit(cache=True, boundscheck=False)
def _fill(old_indptr, old_neighbours, order, place, indptr, neighbours):  # type: ignore[no-untyped-def]
    for row in range(len(order)):
        shift = old_indptr[order[row]] - indptr[row]
        for edge in range(indptr[row], indptr[row + 1]):
            neighbours[edge] = place[old_neighbours[edge + shift]]


def locality_order(adjacency: Adjacency, n_users: int) -> NDArray[np.int64]:
    """Users first, then items, each side grouped by the signs of smooth functions on the graph.

    Averaging random vectors over neighbours leaves what varies slowly along edges, so nodes close
    in the graph have the same signs. Gray code puts groups that differ in one sign side by side.
    """
    smooth = _smooth_vectors(adjacency, n_users)
    group = np.zeros(len(smooth), np.int64)
    for probe in range(SIGNS):
        group = 2 * group + ((smooth[:, probe] > 0) ^ (group & 1))
    is_item = np.arange(len(smooth)) >= n_users
    return np.lexsort((smooth[:, SIGNS], group, is_item))


def _smooth_vectors(adjacency: Adjacency, n_users: int) -> NDArray[np.float32]:
    n = len(adjacency.order)
    step = compile_kernels("float32", PROBES).step
    degrees = np.diff(adjacency.indptr)
    root = np.sqrt(np.maximum(degrees, 1)).astype(np.float32)
    current = np.random.default_rng(0).standard_normal((n, PROBES), dtype=np.float32)
    previous, unused = np.zeros_like(current), np.zeros_like(current)
    for _ in range(2 * SMOOTHINGS):
        step(
            np.array([0, n]), root, adjacency.indptr, adjacency.neighbours, np.float32(1),
            np.float32(0), np.float32(0), current, previous, unused, current[:0], np.zeros(1),
        )  # fmt: skip
        current, previous = previous, current
        for side in (slice(n_users), slice(n_users, n)):
            # The smoothest function is constant everywhere, which tells no nodes apart.
            weights = degrees[side, None] / max(degrees[side].sum(), 1)
            current[side] -= (weights * current[side]).sum(0)
    return current
