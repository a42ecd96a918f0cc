"""HMLET: each node of each late layer is propagated linearly or not, as a gate chooses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel

COLDEST = 0.01  # the temperature at the end of training


class HMLETConfig(EmbeddingConfig, frozen=True):
    layers: int = Field(4, ge=1)  # products with the graph
    gated: int = Field(2, ge=0)  # the last so many of them have gates: the paper's HMLET(End)
    temperature: float = Field(0.7, gt=0)  # of the gates at the start of training
    slope: float = Field(0.01, ge=0, le=1)  # of the leaky ReLU below zero; 1 makes it linear


class HMLET(EmbeddingModel):
    """Kong et al., "Linear, or Non-Linear, That is the Question!", WSDM 2022, eq. 7 to 11.

    A gated layer has `A E` and `leaky(A E)`. For each node a small network of both draws one of
    them in training, by straight-through Gumbel-softmax with a falling temperature, and takes the
    likelier one later. The final embeddings are the mean of all layers. Deviation: the gates have
    no batch normalisation, and the temperature falls over a training of any length."""

    Config = HMLETConfig
    config: HMLETConfig

    def __init__(self, graph: BipartiteGraph, config: HMLETConfig) -> None:
        super().__init__(graph, config)
        dim = config.dim
        self.gates: Sequence[nn.Module] = nn.ModuleList(  # type: ignore[assignment]
            nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 2))
            for _ in range(min(config.gated, config.layers))
        )

    def response(self, x: Tensor) -> Tensor:
        """Of the linear part alone, LightGCN's: what a spectral start is made for."""
        powers = [x**power for power in range(self.config.layers + 1)]
        return torch.stack(powers).mean(0)

    def embeddings(self) -> Tensor:
        layer: Tensor = self.weight
        final = [layer]
        for depth in range(self.config.layers):
            layer = self.graph @ layer
            place = depth - self.config.layers + len(self.gates)
            if place >= 0:
                layer = self._chosen(self.gates[place], layer)
            final.append(layer)
        return torch.stack(final).mean(0)

    def _chosen(self, gate: nn.Module, linear: Tensor) -> Tensor:
        """Of each node its linear or its non-linear row."""
        bent = F.leaky_relu(linear, self.config.slope)
        likely = gate(torch.cat([linear, bent], 1))
        if self.training:
            uniform = torch.rand(likely.shape, generator=self.noise).clamp(1e-6, 1 - 1e-6)
            likely = likely - torch.log(-torch.log(uniform)).to(likely)
        hard = F.one_hot(likely.argmax(1), 2).to(likely)
        if self.training:
            start = self.config.temperature
            temperature = start * (COLDEST / start) ** self.progress
            soft = F.softmax(likely / temperature, 1)
            hard = hard - soft.detach() + soft  # the choice, with the gradient of its probability
        return hard[:, :1] * linear + hard[:, 1:] * bent
