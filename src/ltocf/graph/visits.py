"""Neighbourhoods by random walks: how often each node is visited, and sums weighted by that."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.draws import uniform
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.operator import apply
from ltocf.machine.threads import share_out

STARTS = 256  # nodes whose walks one thread takes at a time


def visits(graph: BipartiteGraph, walks: int, length: int, keep: int, seed: int) -> csr_array:
    """Row r: the `keep` nodes that `walks` random walks of `length` steps from r visit most, each
    with its share of their visits; r itself does not count. (n_nodes, n_nodes)"""
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    nodes = np.zeros((graph.n_nodes, keep), dtype=np.int32)
    counts = np.zeros((graph.n_nodes, keep), dtype=np.float32)

    # Not Numba's own threads: if it has only its work queue, two models that are fitted at once
    # in one process would abort the process.
    def count(first: int, last: int) -> None:
        _count(first, last, graph.indptr, graph.neighbours, walks, length, key, nodes, counts)

    share_out(count, graph.n_nodes, STARTS)
    totals = np.maximum(counts.sum(1, keepdims=True), 1)
    shares: NDArray[np.float32] = (counts / totals).ravel()
    indptr = np.arange(graph.n_nodes + 1) * keep
    matrix = csr_array((shares, nodes.ravel(), indptr), shape=(graph.n_nodes,) * 2)
    matrix.eliminate_zeros()
    return matrix


class Visits:
    """The matrix of `visits` as an operator on embeddings."""

    def __init__(self, weights: csr_array) -> None:
        self.weights = weights

    def __matmul__(self, E: Tensor) -> Tensor:
        return apply(self, E)

    def product(self, E: Tensor) -> Tensor:
        return torch.from_numpy(self.weights @ E.numpy())

    def transposed_product(self, E: Tensor) -> Tensor:
        return torch.from_numpy(self.weights.T @ E.numpy())


@njit(cache=True, nogil=True)
def _count(
    first: Any,
    last: Any,
    indptr: Any,
    neighbours: Any,
    walks: Any,
    length: Any,
    key: Any,
    nodes: Any,
    counts: Any,
) -> None:
    for start in range(first, last):
        if indptr[start] == indptr[start + 1]:
            continue
        seen = np.empty(walks * length, np.int32)
        for walk in range(walks):
            node = np.int64(start)
            for step in range(length):
                degree = indptr[node + 1] - indptr[node]
                drawn = uniform(key, start, walk * length + step, degree)
                node = np.int64(neighbours[indptr[node] + drawn])
                seen[walk * length + step] = node
        seen.sort()
        found = np.unique(seen)
        times = np.searchsorted(seen, found, side="right") - np.searchsorted(seen, found)
        times[found == start] = 0
        order = np.argsort(-times, kind="mergesort")[: nodes.shape[1]]
        for rank, chosen in enumerate(order):
            nodes[start, rank], counts[start, rank] = found[chosen], times[chosen]
