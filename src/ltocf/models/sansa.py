"""Sparse EASE: each item explained by those most alike, so that items x items stays sparse."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import torch
from pydantic import Field
from scipy.sparse import csr_array

from ltocf.graph import BipartiteGraph
from ltocf.models.base import ModelConfig
from ltocf.models.itemitem import ItemItemModel, interaction_matrix, keep_largest, stack

CHUNK = 256  # items solved by one task


class SANSAConfig(ModelConfig, frozen=True):
    l2: float = Field(100.0, gt=0)
    neighbours: int = Field(100, ge=1)  # items that may explain another; all of them gives EASE


class SANSA(ItemItemModel):
    """EASE with a sparse approximate inverse, in the manner of Spisak et al., "Scalable Approximate
    NonSymmetric Autoencoder for Collaborative Filtering", RecSys 2023.

    SANSA drops small entries of a sparse factor of `G = R^T R + l2 I`. Deviation: here column
    i of the inverse is solved for exactly on the rows of i and its nearest neighbours by cosine,
    each item by itself, in parallel. Either way nothing dropped is EASE. Memory: R^T R, sparse.
    """

    Config = SANSAConfig

    def __init__(self, graph: BipartiteGraph, config: SANSAConfig) -> None:
        super().__init__(graph, config)
        self.config = config

    def weights(self) -> csr_array:
        R = interaction_matrix(self.graph.interactions)
        gram = csr_array(R.T @ R)
        gram.sort_indices()
        near = nearest(gram, self.config.neighbours)
        values = np.zeros(near.nnz, dtype=np.float32)

        def solve(start: int) -> None:
            end = min(start + CHUNK, gram.shape[0])
            _solve_items(
                start, end, gram.indptr, gram.indices, gram.data, near.indptr, near.indices,
                np.float32(self.config.l2), values,
            )  # fmt: skip

        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            list(pool.map(solve, range(0, gram.shape[0], CHUNK)))
        # Column i of B explains item i; scores are r B, so W's rows are those who explain.
        return csr_array(csr_array((values, near.indices, near.indptr), shape=gram.shape).T)


def nearest(gram: csr_array, k: int) -> csr_array:
    """The k other items of greatest cosine for each item, in the pattern of the result."""
    roots = np.sqrt(np.maximum(gram.diagonal(), 1))
    rows = np.repeat(np.arange(gram.shape[0]), np.diff(gram.indptr))
    cosine = gram.data / roots[rows] / roots[gram.indices]
    cosine[gram.indices == rows] = 0
    alike = csr_array((cosine.astype(np.float32), gram.indices, gram.indptr), shape=gram.shape)
    return stack(
        keep_largest(alike[start : start + CHUNK], k) for start in range(0, gram.shape[0], CHUNK)
    )


@numba.njit(nogil=True, cache=True)
def _solve_items(
    start: Any,
    stop: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    near_indptr: Any,
    near: Any,
    l2: Any,
    out: Any,
) -> None:
    """What each neighbour adds to item i: -z / z_i, with G z = e_i on i and its neighbours."""
    place = np.full(len(indptr) - 1, -1, np.int32)
    for item in range(start, stop):
        first, last = near_indptr[item], near_indptr[item + 1]
        # An item with few neighbours may be among them, with cosine 0: it is the last row instead.
        support = np.empty(last - first + 1, near.dtype)
        n = 0
        for p in range(first, last):
            if near[p] != item:
                support[n] = near[p]
                n += 1
        support[n] = item
        G = np.zeros((n + 1, n + 1), np.float32)
        for a in range(n + 1):
            place[support[a]] = a
        for a in range(n + 1):
            for p in range(indptr[support[a]], indptr[support[a] + 1]):
                b = place[indices[p]]
                if b >= 0:
                    G[a, b] = data[p]
            G[a, a] += l2
        # With item last, L^T z = e_last / L[last, last] is all that is left after factorising.
        L = np.linalg.cholesky(G)
        z = np.zeros(n + 1, np.float32)
        z[n] = 1  # any multiple will do
        for a in range(n - 1, -1, -1):
            total = np.float32(0)
            for b in range(a + 1, n + 1):
                total += L[b, a] * z[b]
            z[a] = -total / L[a, a]
        for a in range(n + 1):
            place[support[a]] = -1
        n = 0
        for p in range(first, last):
            if near[p] != item:
                out[p] = -z[n]
                n += 1
