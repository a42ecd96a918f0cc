"""The last step of a propagation, in which users look at what they touched last."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.graph import BipartiteGraph, torch_csr


class RecentAdjacency:
    """`adjacency @ E` is A E but for the users' rows, in which the entries are weighted.

    `rows` are those rows: (n_users, n_items), in the order of the graph's interactions. The matrix
    is not symmetric, so the gradient takes its transpose. Memory: 24 bytes an interaction each.
    """

    def __init__(self, graph: BipartiteGraph, rows: csr_array, plain: csr_array) -> None:
        self.graph = graph
        n = len(rows.data)
        to_items = np.argsort(rows.indices, kind="stable")  # the order of the items' rows
        self._values = (
            np.concatenate([rows.data, plain.data[to_items]]),
            np.concatenate([plain.data, rows.data[to_items]]),
        )
        assert len(graph.neighbours) == 2 * n
        self._matrices: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    def matrices(self, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The matrix and its transpose."""
        if (device, dtype) not in self._matrices:
            there, back = (
                torch_csr(self.graph, torch.from_numpy(values)).to(device, dtype)
                for values in self._values
            )
            self._matrices[device, dtype] = there, back
        return self._matrices[device, dtype]

    def __matmul__(self, E: Tensor) -> Tensor:
        product: Tensor = _Product.apply(E, *self.matrices(E.device, E.dtype))  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, E: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.matrices = transpose, matrix
        return matrix @ E

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        product: Tensor = _Product.apply(gradient, *ctx.matrices)  # type: ignore[no-untyped-call]
        return product, None, None
