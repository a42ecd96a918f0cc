"""The neighbours of each node, as arrays that the compiled kernels read; without torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions
from ltocf.graph.kernels.blocks import chebyshev_sum, column_padding, multiply
from ltocf.graph.kernels.ordering import Adjacency, locality_order
from ltocf.machine.threads import thread_count
from ltocf.tables import Tables

NODES_TO_ORDER = 1 << 14  # with fewer, a block of columns stays in cache in any order

Table = NDArray[np.floating[Any]]


class Neighbours:
    """The neighbours of every user and item, users' rows first, then items'."""

    def __init__(self, train: Interactions) -> None:
        self.train, self.n_users = train, train.n_users
        self.n_nodes = train.n_users + train.n_items
        self.degrees: NDArray[np.int64] = np.concatenate([train.user_degrees, train.item_degrees])
        # Row r's neighbours are `neighbours[indptr[r]:indptr[r + 1]]`, as rows of the whole table.
        self.indptr: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self.degrees)])
        self.tables = Tables()  # buffers for embeddings, reused in every step

    @cached_property
    def neighbours(self) -> NDArray[np.int32]:
        """The neighbours in the order of the rows; the kernels have an order of their own."""
        return self._listed()

    def _listed(self) -> NDArray[np.int32]:
        neighbours = np.empty(2 * len(self.train), np.int32)
        places = self.indptr[self.n_users : -1].copy()  # where each item's next user goes
        _list_both_ways(self.train.users, self.train.items, self.n_users, places, neighbours)
        return neighbours

    @cached_property
    def _ordered(self) -> Adjacency:
        if self.n_nodes < NODES_TO_ORDER:
            return Adjacency.natural(self.indptr, self.neighbours)
        natural = Adjacency.natural(self.indptr, self._listed())  # freed after the reordering
        return natural.reordered(locality_order(natural, self.n_users))

    def product(self, E: Table) -> Table:
        """A E, where no interaction has a strength. (n_nodes, any)"""
        whole = _whole_registers(E)
        assert len(E) == self.n_nodes  # the kernels do not look
        out = self.tables.empty(whole.shape, whole.dtype)
        multiply(self._ordered, whole, out)
        return np.ascontiguousarray(out[:, : E.shape[1]])

    def chebyshev_sum(
        self, E: Table, coefficients: Sequence[float], other: Table | None = None
    ) -> tuple[Table, list[float]]:
        """sum_k c_k T_k(A) E, and each <T_k(A) E, other> if there is an `other`; as above."""
        whole = _whole_registers(E)
        assert len(E) == self.n_nodes  # the kernels do not look
        beside = None if other is None else _whole_registers(other)
        out = self.tables.empty(whole.shape, whole.dtype)
        products = chebyshev_sum(
            self._ordered, whole, coefficients, beside, out, thread_count(), self.tables
        )
        columns = np.ascontiguousarray(out[:, : E.shape[1]])
        return columns, [] if other is None else products


def _whole_registers(table: Table) -> Table:
    """The table, contiguous, with columns of zeros added where the kernels need them."""
    padding = column_padding(table.shape[1], table.itemsize)
    return np.pad(table, ((0, 0), (0, padding))) if padding else np.ascontiguousarray(table)


@njit(cache=True, nogil=True, boundscheck=False)
def _list_both_ways(
    users: Any, items: Any, n_users: Any, next_of_item: Any, neighbours: Any
) -> None:
    """The neighbours of users, as they are in the pairs, and those of items, by counting. Pairs
    ascend by user, so an item's users do too."""
    for pair in range(len(users)):
        item = items[pair]
        neighbours[pair] = item + n_users
        neighbours[next_of_item[item]] = users[pair]
        next_of_item[item] += 1
