"""NeuMF: a network over two vectors and their product."""

from __future__ import annotations

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.layers import dropout
from ltocf.models.network import PairConfig, PairModel
from ltocf.scorers.networks import NeuMFScorer


class NeuMFConfig(PairConfig, frozen=True):
    width: int = Field(64, ge=1)  # of the hidden layers
    layers: int = Field(2, ge=1)  # hidden ones
    dropout: float = Field(0.1, ge=0, lt=1)  # of the hidden layers, in training


class NeuMF(PairModel):
    """He et al., "Neural Collaborative Filtering", WWW 2017, as compared in the NGCF paper:
    [e_u; e_i; e_u * e_i] through ReLU layers of one width to a linear score, with BPR.

    One table a side where the authors have two. Ranking everything costs users x items x width
    x (dim + width) multiplications, about four minutes of one core for Gowalla: evaluate seldom."""

    Config = NeuMFConfig
    config: NeuMFConfig

    def __init__(self, graph: BipartiteGraph, config: NeuMFConfig) -> None:
        super().__init__(graph, config)
        self.first = nn.Linear(3 * config.dim, config.width)
        self.hidden = nn.ModuleList(
            nn.Linear(config.width, config.width) for _ in range(config.layers - 1)
        )
        self.output = nn.Linear(config.width, 1, bias=False)

    def penalised(self) -> list[Tensor]:
        return [self.output.weight]

    def score(self, users: Tensor, items: Tensor) -> Tensor:
        own, other = self.vectors(users, items)
        noise = self.noise if self.training else None
        of_user, of_item, of_product = self.first.weight.chunk(3, 1)
        # A layer on the three side by side is the sum of a layer on each; the user's is shared.
        x = F.linear(own, of_user, self.first.bias) + F.linear(other, of_item)
        x = x + F.linear(own * other, of_product)
        for layer in self.hidden:
            x = layer(dropout(F.relu(x), self.config.dropout, noise))
        scores: Tensor = self.output(dropout(F.relu(x), self.config.dropout, noise))[..., 0]
        return scores

    def scorer(self) -> NeuMFScorer:
        arrays = self.arrays("first", "hidden")
        arrays["output"] = self.output.weight.detach().cpu().numpy()[0]
        return NeuMFScorer(arrays, hidden=len(self.hidden))
