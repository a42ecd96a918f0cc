"""GC-MC: one graph convolution and a dense layer."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.normalisations import neighbour_mean
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel
from ltocf.models.layers import dropout


class GCMCConfig(EmbeddingConfig, frozen=True):
    dropout: float = Field(0.1, ge=0, lt=1)  # of the final vectors, in training
    slope: float = Field(0.2, ge=0, le=1)  # of the leaky ReLU below zero
    normalisation: Literal["mean", "symmetric"] = "mean"  # 1 / |N_i| or 1 / sqrt(|N_i| |N_j|)


class GCMC(EmbeddingModel):
    """Van den Berg, Kipf and Welling, "Graph Convolutional Matrix Completion", KDD 2018 workshop,
    in the one-layer form compared in the NGCF paper for implicit feedback.

    H = leaky(D^-1 B E W1 + b1), Z = dropout(H W2 + b2), scored by dot product. One kind of edge
    and no rating decoder; leaky ReLU as in NGCF's code; l2 on Z. Or, as the paper also has it, with
    D^-1/2 B D^-1/2 in place of the mean, which keeps that popular items are popular."""

    Config = GCMCConfig
    config: GCMCConfig
    penalise_final = True

    def __init__(self, graph: BipartiteGraph, config: GCMCConfig) -> None:
        super().__init__(graph, config)
        self.convolve = nn.Linear(config.dim, config.dim)
        self.dense = nn.Linear(config.dim, config.dim)

    def embeddings(self) -> Tensor:
        symmetric = self.config.normalisation == "symmetric"
        near = (self.graph @ self.weight) if symmetric else neighbour_mean(self.graph, self.weight)
        hidden = F.leaky_relu(self.convolve(near), self.config.slope)
        return dropout(
            self.dense(hidden), self.config.dropout, self.noise if self.training else None
        )
