"""The graph of who touched what, as a symmetric linear operator on embeddings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltocf.data.interactions import Interactions
from ltocf.graph.neighbours import Neighbours
from ltocf.graph.operator import apply, kernels_can_read


class BipartiteGraph:
    """The normalised adjacency A[u, i] = 1 / sqrt(deg u * deg i), users' rows first, then items'.

    `graph @ E` is A E for E of shape (n_nodes, dim), differentiable, on its device, in its dtype.
    Where interactions have strengths s, A[u, i] = s_ui / sqrt(sum of u's * sum of i's). The kernels
    store no values, so that is left to torch's sparse product, which is slower.
    """

    def __init__(self, train: Interactions) -> None:
        self.interactions, self.lists = train, Neighbours(train)
        self.n_users, self.n_items = train.n_users, train.n_items
        self.n_nodes = self.n_users + self.n_items
        self.degrees, self.indptr = self.lists.degrees, self.lists.indptr
        self.strengths = np.concatenate([train.user_strengths, train.item_strengths])
        self._sparse: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    @property
    def neighbours(self) -> NDArray[np.int32]:
        """Row r's are `neighbours[indptr[r]:indptr[r + 1]]`, as rows of the whole table."""
        return self.lists.neighbours

    def split(self, E: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of the users and the rows of the items."""
        return E[: self.n_users], E[self.n_users :]

    def __matmul__(self, E: Tensor) -> Tensor:
        return apply(self, E)

    def product(self, E: Tensor) -> Tensor:
        """A E without gradients."""
        if not self._has_kernels(E):
            return self.sparse_matrix(E.device, E.dtype) @ E
        return torch.from_numpy(self.lists.product(E.numpy()))

    transposed_product = product  # A is symmetric

    def chebyshev_sum(
        self, E: Tensor, coefficients: Sequence[float], other: Tensor | None = None
    ) -> tuple[Tensor, list[float]]:
        """sum_k c_k T_k(A) E, and each <T_k(A) E, other> if there is an `other`. No gradients."""
        if not self._has_kernels(E):
            return self._chebyshev_torch(E.detach(), coefficients, other)
        beside = None if other is None else other.detach().numpy()
        total, products = self.lists.chebyshev_sum(E.detach().numpy(), coefficients, beside)
        return torch.from_numpy(total), products

    def empty_like(self, E: Tensor) -> Tensor:
        """An uninitialised table of this shape; on a CPU one that was used before, if there is
        any."""
        if not kernels_can_read(E):
            return torch.empty_like(E)
        kind = torch.empty(0, dtype=E.dtype).numpy().dtype
        return torch.from_numpy(self.lists.tables.empty(tuple(E.shape), kind))

    def _has_kernels(self, E: Tensor) -> bool:
        return kernels_can_read(E) and self.interactions.strengths is None

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
        return out, torch.stack(products).cpu().tolist() if products else []

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
