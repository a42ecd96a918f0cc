"""The graph over a grid of processes: each has the rows of some nodes and some of the columns.

No process needs the whole graph. Columns never mix, so processes with different columns do not
communicate; those with the same columns exchange their rows before every product.
`chebyshev_filter` accepts such a part in place of a whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from ltocf.distributed import count, rank
from ltocf.errors import ConfigError
from ltocf.graph.kernels.blocks import BLOCK_BYTES, RANGES, column_padding
from ltocf.graph.kernels.recurrence import compile_kernels
from ltocf.machine.threads import share_out

Table = NDArray[np.floating[Any]]
Nodes = NDArray[np.integer[Any]]


class GridGraph:
    """The rows of A of every `row_groups`-th node, and so each node's neighbours, for one process.

    Processes of one row group follow each other in rank, so that process r * columns + c has rows r
    and columns c. It is built from the pairs that touch its own nodes (`is_needed`), and from no
    others. Tables have a row for each of its own nodes, in their order, and rows of zeros if it has
    fewer nodes than other processes.
    """

    def __init__(self, users: Nodes, items: Nodes, n_users: int, n_items: int, row_groups: int):
        if count() % row_groups:
            raise ConfigError(
                f"row_groups = {row_groups}: must divide the number of processes, {count()}"
            )
        columns = count() // row_groups
        self.row_groups, self.own = row_groups, rank() // columns
        self.peers = [
            dist.new_group([group * columns + column for group in range(row_groups)])
            for column in range(columns)
        ][rank() % columns]
        self.beside = [  # the processes with the same rows and other columns
            dist.new_group([group * columns + column for column in range(columns)])
            for group in range(row_groups)
        ][self.own]
        self.column_groups = columns
        self.n_users, self.n_items = n_users, n_items
        self.n_nodes = n_users + n_items
        self.share = -(-self.n_nodes // row_groups)  # rows of a process
        nodes = np.concatenate([users, items + n_users])
        others = np.concatenate([items + n_users, users])
        mine = nodes % row_groups == self.own
        nodes, others = nodes[mine] // row_groups, others[mine]
        degrees = np.bincount(nodes, minlength=self.share)
        self.indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        others = others[np.argsort(nodes, kind="stable")]
        # The place of a node's row in a table with the rows of all groups, one group after another.
        self.neighbours = (others % row_groups * self.share + others // row_groups).astype(np.int32)
        self.root = np.sqrt(np.maximum(degrees, 1))

    @staticmethod
    def is_needed(
        users: Nodes, items: Nodes, n_users: int, row_groups: int, own: int
    ) -> NDArray[np.bool_]:
        """Which of these pairs a process of the `own`-th row group needs."""
        needed: NDArray[np.bool_] = (users % row_groups == own) | (
            (items + n_users) % row_groups == own
        )
        return needed

    def own_rows(self, table: Tensor) -> Tensor:
        """This process's rows of a table of all nodes. (share, any)"""
        part = table[self.own :: self.row_groups]
        return torch.cat([part, part.new_zeros(self.share - len(part), table.shape[1])])

    def chebyshev_sum(
        self, E: Tensor, coefficients: Sequence[float], other: Tensor | None = None
    ) -> tuple[Tensor, list[float]]:
        """This process's rows and columns of sum_k c_k T_k(A) E, from those of E. If there is an
        `other`, each <T_k(A) E, other> too, over all processes. No gradients."""
        own = _whole_registers(E)
        beside = own[:0] if other is None else _whole_registers(other)
        out, products = np.empty_like(own), np.zeros(len(coefficients))
        block = BLOCK_BYTES // own.itemsize
        for column in range(0, own.shape[1], block):
            some = slice(column, min(column + block, own.shape[1]))
            out[:, some] = self._sum_block(own[:, some], coefficients, beside[:, some], products)
        if other is not None:
            dist.all_reduce(torch.from_numpy(products))
        return torch.from_numpy(np.ascontiguousarray(out[:, : E.shape[1]])), (
            [] if other is None else products.tolist()
        )

    def _sum_block(
        self, E: Table, coefficients: Sequence[float], other: Table, products: Table
    ) -> Table:
        """The same for a few columns; the parts of the inner products are added to `products`."""
        real, beside = E.dtype.type, np.ascontiguousarray(other)
        step = compile_kernels(E.dtype.name, E.shape[1]).step
        root = self.root.astype(E.dtype)
        total = real(coefficients[0]) * np.ascontiguousarray(E)
        mine, before = E / root[:, None], np.zeros_like(total)
        every = np.empty((self.row_groups * self.share, E.shape[1]), E.dtype)
        products[0] += np.vdot(E, beside) if len(beside) else 0.0
        work = self.indptr + np.arange(self.share + 1)
        bounds = np.searchsorted(work, np.linspace(0, work[-1], RANGES + 1))
        for k, coefficient in enumerate(coefficients[1:], 1):
            dist.all_gather_into_tensor(
                torch.from_numpy(every), torch.from_numpy(mine), group=self.peers
            )
            alpha, beta = (real(1), real(0)) if k == 1 else (real(2), real(1))
            parts = np.zeros(RANGES)
            fixed = root, self.indptr, self.neighbours, alpha, beta, real(coefficient)
            tables = every, before, total, beside
            share_out(partial(_run, step, bounds, (*fixed, *tables), parts), RANGES, 1)
            products[k] += parts.sum()
            mine, before = before, mine
        return total

    def bytes_sent(self, columns: int, degree: int, itemsize: int = 4) -> int:
        """The bytes that this process sends for a sum of this degree: its rows, to each other row
        group."""
        return degree * (self.row_groups - 1) * self.share * columns * itemsize


def _run(
    step: Callable[..., None],
    bounds: NDArray[np.int64],
    arguments: tuple[Any, ...],
    parts: NDArray[np.float64],
    low: int,
    high: int,
) -> None:
    step(bounds[low : high + 1], *arguments, parts[low:high])


def _whole_registers(table: Tensor) -> Table:
    """The table with columns of zeros added where the kernels need them."""
    rows: Table = table.detach().numpy()
    return np.pad(rows, ((0, 0), (0, column_padding(rows.shape[1], rows.itemsize))))
