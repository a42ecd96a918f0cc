"""PinSage: graph convolutions that keep a node's own vector beside its neighbours' mean."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from ltocf.graph import BipartiteGraph
from ltocf.models.base import EmbeddingConfig, EmbeddingModel
from ltocf.propagation.neighbours import neighbour_mean


class PinSageConfig(EmbeddingConfig, frozen=True):
    layers: int = Field(2, ge=1)


class PinSage(EmbeddingModel):
    """Ying et al., "Graph Convolutional Neural Networks for Web-Scale Recommender Systems", KDD
    2018, algorithm 1, on the graph of users and items as compared in the NGCF paper.

    N = D^-1 B relu(E Q + q), E' = normalise(relu([E, N] W + w)). Deviations: neighbours are pooled
    by their exact mean instead of sampled walks, which the whole graph on one machine affords; the
    last layer is neither rectified nor normalised, or BPR could not separate scores within [0, 1];
    l2 on the last layer."""

    Config = PinSageConfig
    penalise_final = True

    def __init__(self, graph: BipartiteGraph, config: PinSageConfig) -> None:
        super().__init__(graph, config)
        dim = config.dim
        self.pool = nn.ModuleList(nn.Linear(dim, dim) for _ in range(config.layers))
        self.combine = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(config.layers))

    def embeddings(self) -> Tensor:
        state: Tensor = self.weight
        for depth, (pool, combine) in enumerate(zip(self.pool, self.combine, strict=True), 1):
            near = neighbour_mean(self.graph, F.relu(pool(state)))
            state = combine(torch.cat([state, near], 1))
            if depth < len(self.pool):
                state = F.normalize(F.relu(state))
        return state
