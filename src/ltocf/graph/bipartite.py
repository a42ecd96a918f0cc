"""The graph of who touched what, as a symmetric linear operator on embeddings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from ltocf.data.interactions import Interactions
from ltocf.graph.kernels.blocks import chebyshev_sum, column_padding, multiply
from ltocf.graph.kernels.ordering import Adjacency, locality_order
from ltocf.graph.operator import apply

NODES_TO_ORDER = 1 << 14  # with fewer, a block of columns stays in cache in any order


class BipartiteGraph:
    """The normalised adjacency A[u, i] = 1 / sqrt(deg u * deg i), users' rows first, then items'.

    `graph @ E` is A E for E of shape (n_nodes, dim), differentiable, on its device, in its dtype.
    Where interactions have strengths s, A[u, i] = s_ui / sqrt(sum of u's * sum of i's). The kernels
    store no values, so that is left to torch's sparse product, which is slower.
    """

    def __init__(self, train: Interactions) -> None:
        self.interactions = train
        self.n_users, self.n_items = train.n_users, train.n_items
        self.n_nodes = self.n_users + self.n_items
        self.degrees: NDArray[np.int64] = np.concatenate([train.user_degrees, train.item_degrees])
        self.strengths = np.concatenate([train.user_strengths, train.item_strengths])
        # Row r's neighbours are `neighbours[indptr[r]:indptr[r + 1]]`, as rows of the whole table.
        self.indptr: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self.degrees)])
        self._sparse: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    @cached_property
    def neighbours(self) -> NDArray[np.int32]:
        """For who wants them in the order of the rows; the kernels have their own."""
        return self._list_neighbours()

    def _list_neighbours(self) -> NDArray[np.int32]:
        pairs = self.interactions
        neighbours = np.empty(2 * len(pairs), np.int32)
        places = self.indptr[self.n_users : -1].copy()  # where each item's next user goes
        _list_both_ways(pairs.users, pairs.items, self.n_users, places, neighbours)
        return neighbours

    def split(self, E: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of the users and the rows of the items."""
        return E[: self.n_users], E[self.n_users :]

    def __matmul__(self, E: Tensor) -> Tensor:
        return apply(self, E)

    def product(self, E: Tensor) -> Tensor:
        """A E without gradients."""
        if not self._has_kernels(E):
            return self.sparse_matrix(E.device, E.dtype) @ E
        assert len(E) == self.n_nodes  # the kernels do not look
        whole = _whole_registers(E)
        out = torch.empty_like(whole)
        multiply(self._adjacency, whole.numpy(), out.numpy())
        return out[:, : E.shape[1]].contiguous()

    transposed_product = product  # A is symmetric

    def chebyshev_sum(
        self, E: Tensor, coefficients: Sequence[float], other: Tensor | None = None
    ) -> tuple[Tensor, list[float]]:
        """sum_k c_k T_k(A) E, and each <T_k(A) E, other> if there is an `other`. No gradients."""
        compute = self._chebyshev_cpu if self._has_kernels(E) else self._chebyshev_torch
        return compute(E.detach(), coefficients, other)

    def _has_kernels(self, E: Tensor) -> bool:
        return E.device.type == "cpu" and self.interactions.strengths is None

    def _chebyshev_cpu(
        self, E: Tensor, coefficients: Sequence[float], other: Tensor | None
    ) -> tuple[Tensor, list[float]]:
        assert len(E) == self.n_nodes  # the kernels do not look
        dim, threads = E.shape[1], torch.get_num_threads()
        E = _whole_registers(E)
        beside = None if other is None else _whole_registers(other.detach()).numpy()
        out = torch.empty_like(E)
        products = chebyshev_sum(
            self._adjacency, E.numpy(), coefficients, beside, out.numpy(), threads
        )
        return out[:, :dim].contiguous(), [] if other is None else products

    @cached_property
    def _adjacency(self) -> Adjacency:
        if self.n_nodes < NODES_TO_ORDER:
            return Adjacency.natural(self.indptr, self.neighbours)
        natural = Adjacency.natural(self.indptr, self._list_neighbours())  # let go of afterwards
        return natural.reordered(locality_order(natural, self.n_users))

    def _chebyshev_torch(
        self, E: Tensor, coefficients: Sequence[float], other: Tensor | None
    ) -> tuple[Tensor, list[float]]:
        A = self.sparse_matrix(E.device, E.dtype)
        previous, current = torch.zeros_like(E), E
        out = coefficients[0] * E
        products = [] if other is None else [torch.sum(E * other, dtype=torch.float64)]
        for k, coefficient in enumerate(coefficients[1:]):
            previous, current = current, (1 if k == 0 else 2) * (A @ current) - previous
            out.add_(current, alpha=coefficient)
            if other is not None:
                products.append(torch.sum(current * other, dtype=torch.float64))
        return out, torch.stack(products).tolist() if products else []

    def sparse_matrix(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        """A itself, as torch stores it. (n_nodes, n_nodes)"""
        if (device, dtype) not in self._sparse:
            indptr, neighbours = torch.from_numpy(self.indptr), torch.from_numpy(self.neighbours)
            root = torch.from_numpy(np.sqrt(np.where(self.strengths > 0, self.strengths, 1)))
            values = 1 / (root[neighbours.long()] * root.repeat_interleave(indptr.diff()))
            if (strengths := self.interactions.strengths) is not None:
                by_item = np.argsort(self.interactions.items, kind="stable")
                values *= torch.from_numpy(np.concatenate([strengths, strengths[by_item]]))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
                self._sparse[device, dtype] = torch.sparse_csr_tensor(
                    indptr,
                    neighbours.long(),
                    values,
                    (self.n_nodes, self.n_nodes),
                    check_invariants=False,
                ).to(device, dtype)
        return self._sparse[device, dtype]


@njit(cache=True, nogil=True, boundscheck=False)
def _list_both_ways(
    users: Any, items: Any, n_users: Any, next_of_item: Any, neighbours: Any
) -> None:
    """The users' neighbours as they stand, and the items' by counting: pairs ascend by user, so
    that an item's users do too."""
    for pair in range(len(users)):
        item = items[pair]
        neighbours[pair] = item + n_users
        neighbours[next_of_item[item]] = users[pair]
        next_of_item[item] += 1


def _whole_registers(table: Tensor) -> Tensor:
    """The table, contiguous, with columns of zeros added where the kernels need them."""
    padding = column_padding(table.shape[1], table.itemsize)
    return F.pad(table, (0, padding)) if padding else table.contiguous()
