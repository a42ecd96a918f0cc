"""The last step of a propagation, in which the users' latest items count more."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.operator import apply


class WeightedAdjacency:
    """`adjacency @ E` is A E with the entries of the users' rows of A multiplied by `weights`.

    The weights are (n_users, n_items), in the order of the graph's interactions. The matrix is not
    symmetric; it and its transpose share the indices of A as torch stores it.
    """

    def __init__(self, graph: BipartiteGraph, weights: csr_array) -> None:
        self.graph = graph
        by_user = torch.from_numpy(weights.data)
        by_item = by_user[torch.from_numpy(np.argsort(weights.indices, kind="stable"))]
        ones = torch.ones_like(by_user)
        self._factors = torch.cat([by_user, ones]), torch.cat([ones, by_item])
        self._matrices: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    def __matmul__(self, E: Tensor) -> Tensor:
        return apply(self, E)

    def product(self, E: Tensor) -> Tensor:
        return self.matrices(E.device, E.dtype)[0] @ E

    def transposed_product(self, E: Tensor) -> Tensor:
        return self.matrices(E.device, E.dtype)[1] @ E

    def matrices(self, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The matrix and its transpose."""
        if (device, dtype) not in self._matrices:
            A = self.graph.sparse_matrix(device, dtype)
            there, back = (
                torch.sparse_csr_tensor(
                    A.crow_indices(),
                    A.col_indices(),
                    A.values() * factors.to(device, dtype),
                    A.shape,
                    check_invariants=False,
                )
                for factors in self._factors
            )
            self._matrices[device, dtype] = there, back
        return self._matrices[device, dtype]
