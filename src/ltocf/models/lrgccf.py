"""LR-GCCF: linear graph convolution, with every layer's residual preference."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from ltocf.graph.normalisations import with_self_loops
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel


class LRGCCFConfig(EmbeddingConfig, frozen=True):
    layers: int = Field(3, ge=0)  # products with the graph
    initial_std: float = Field(0.01, gt=0)  # of the vectors at the start


class LRGCCF(EmbeddingModel):
    """Chen et al., "Revisiting Graph based Collaborative Filtering: A Linear Residual Graph
    Convolutional Network Approach", AAAI 2020, eq. 8 and 11.

    Layers E_{k+1} = (D + 1)^-1/2 (B + 1) (D + 1)^-1/2 E_k, no weights between them; each layer adds
    its score to those before, which is the dot product of the layers side by side. l2 acts on
    those, as in the authors' code."""

    Config = LRGCCFConfig
    config: LRGCCFConfig
    penalise_final = True

    def embeddings(self) -> Tensor:
        states: list[Tensor] = [self.weight]
        for _ in range(self.config.layers):
            states.append(with_self_loops(self.graph, states[-1]))
        return torch.cat(states, 1)
