"""Other normalisations of the adjacency, as `graph @` between scalings of the rows.

With B the adjacency, of 0 and 1 or of strengths, and D its row sums, the graph is
A = D^-1/2 B D^-1/2, so B = D^1/2 A D^1/2.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ltocf.graph.bipartite import BipartiteGraph


def degrees(graph: BipartiteGraph, like: Tensor) -> Tensor:
    """Of every node, 1 where there are none: an empty row of B stays empty. (n_nodes, 1)"""
    return torch.from_numpy(np.where(graph.strengths > 0, graph.strengths, 1)).to(like)[:, None]


def neighbour_sum(graph: BipartiteGraph, E: Tensor) -> Tensor:
    """B E: the sum of each node's neighbours' rows."""
    root = degrees(graph, E).sqrt()
    return root * (graph @ (root * E))


def neighbour_mean(graph: BipartiteGraph, E: Tensor) -> Tensor:
    """D^-1 B E: the mean of each node's neighbours' rows, zero where it has none."""
    root = degrees(graph, E).sqrt()
    return (graph @ (root * E)) / root


def neighbour_and_self_mean(graph: BipartiteGraph, E: Tensor) -> Tensor:
    """(D + 1)^-1 (B + 1) E: the mean over a node's neighbours and itself."""
    return (neighbour_sum(graph, E) + E) / (_true_degrees(graph, E) + 1)


def with_self_loops(graph: BipartiteGraph, E: Tensor) -> Tensor:
    """(D + 1)^-1/2 (B + 1) (D + 1)^-1/2 E: Kipf and Welling's symmetric normalisation."""
    scale = (_true_degrees(graph, E) + 1).rsqrt()
    scaled = scale * E
    return scale * (neighbour_sum(graph, scaled) + scaled)


def _true_degrees(graph: BipartiteGraph, like: Tensor) -> Tensor:
    return torch.from_numpy(graph.strengths).to(like)[:, None]
