"""PinSage: graph convolutions that keep a node's own vector beside its neighbours' mean."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.normalisations import neighbour_mean
from ltocf.graph.visits import Visits, visits
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel


class PinSageConfig(EmbeddingConfig, frozen=True):
    layers: int = Field(2, ge=1)  # products with the graph
    walks: int = Field(0, ge=0)  # random walks from a node; 0 takes all its neighbours alike
    walk_length: int = Field(3, ge=1)  # steps of a walk
    neighbours: int = Field(50, ge=1)  # of the nodes on its walks, how many to keep


class PinSage(EmbeddingModel):
    """Ying et al., "Graph Convolutional Neural Networks for Web-Scale Recommender Systems", KDD
    2018, algorithm 1, on the graph of users and items as compared in the NGCF paper.

    N = D^-1 B relu(E Q + q), E' = normalise(relu([E, N] W + w)). With `walks`, N is the paper's
    importance pooling instead: the nodes most visited by random walks, weighted by their visits.
    Deviations: the exact mean of the neighbours is the default, which the whole graph on one
    machine affords; walks are drawn once; the last layer is neither rectified nor normalised, or
    BPR could not separate scores within [0, 1]; l2 on the last layer."""

    Config = PinSageConfig
    config: PinSageConfig
    penalise_final = True

    def __init__(self, graph: BipartiteGraph, config: PinSageConfig) -> None:
        super().__init__(graph, config)
        dim = config.dim
        self.visits: Visits | None = None
        self.pool = nn.ModuleList(nn.Linear(dim, dim) for _ in range(config.layers))
        self.combine = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(config.layers))

    def near(self, E: Tensor) -> Tensor:
        if not self.config.walks:
            return neighbour_mean(self.graph, E)
        if self.visits is None:
            walks, length = self.config.walks, self.config.walk_length
            self.visits = Visits(visits(self.graph, walks, length, self.config.neighbours, seed=0))
        return self.visits @ E

    def embeddings(self) -> Tensor:
        state: Tensor = self.weight
        for depth, (pool, combine) in enumerate(zip(self.pool, self.combine, strict=True), 1):
            near = self.near(F.relu(pool(state)))
            state = combine(torch.cat([state, near], 1))
            if depth < len(self.pool):
                state = F.normalize(F.relu(state))
        return state
