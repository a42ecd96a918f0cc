"""NGCF: graph convolution with weights, non-linearity and products of neighbours."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.normalisations import neighbour_and_self_mean
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel
from ltocf.models.layers import dropout


class NGCFConfig(EmbeddingConfig, frozen=True):
    layers: int = Field(3, ge=1)  # products with the graph
    dropout: float = Field(0.1, ge=0, lt=1)  # of a layer's messages
    slope: float = Field(0.2, ge=0, le=1)  # of the leaky ReLU below zero; 1 makes it linear


class NGCF(EmbeddingModel):
    """Wang et al., "Neural Graph Collaborative Filtering", SIGIR 2019, eq. 7 and 9.

    S = (D + 1)^-1 (B + 1) E_k; E_{k+1} = leaky(S W1 + b1) + leaky((E_k * S) W2 + b2); the final
    vector is E_0 beside each layer scaled to length 1, and l2 acts on it. All as in the authors'
    code, whose defaults have message dropout and no node dropout. A layer costs one product with
    the graph and two with a (dim, dim) matrix over all nodes, and about twice that back, whatever
    the batch: large batches pay."""

    Config = NGCFConfig
    config: NGCFConfig
    penalise_final = True

    def __init__(self, graph: BipartiteGraph, config: NGCFConfig) -> None:
        super().__init__(graph, config)
        dim = config.dim
        self.sums = nn.ModuleList(nn.Linear(dim, dim) for _ in range(config.layers))
        self.products = nn.ModuleList(nn.Linear(dim, dim) for _ in range(config.layers))

    def embeddings(self) -> Tensor:
        layer: Tensor = self.weight
        final = [layer]
        noise = self.noise if self.training else None
        for from_sum, from_product in zip(self.sums, self.products, strict=True):
            near = neighbour_and_self_mean(self.graph, layer)
            messages = self._activate(from_sum(near)) + self._activate(from_product(layer * near))
            layer = dropout(messages, self.config.dropout, noise)
            final.append(F.normalize(layer))
        return torch.cat(final, 1)

    def _activate(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.config.slope)
