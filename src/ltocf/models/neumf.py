"""NeuMF: a network over two vectors and their product."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from ltocf.data.interactions import Rows
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.layers import dropout
from ltocf.models.network import PairConfig, PairModel, PairScorer

ITEM_BLOCK = 4096  # items scored at once for a user: their hidden layer stays in the cache


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
        return NeuMFScorer(self)


class NeuMFScorer(PairScorer):
    @torch.no_grad()
    def __init__(self, model: NeuMF) -> None:
        super().__init__(model)
        of_user, of_item, self.of_product = model.first.weight.detach().chunk(3, 1)
        self.user_part = F.linear(self.users, of_user, model.first.bias)
        self.item_part = F.linear(self.items, of_item)
        self.model = model

    @torch.no_grad()
    def __call__(self, users: Rows) -> Tensor:
        out = self.items.new_empty(len(users), len(self.items))
        for row, user in enumerate(users.astype(np.int64)):
            # (e_u * e_i) W = e_i (diag(e_u) W): one matrix product for all items of a user.
            product = (self.of_product * self.users[user]).T
            for start in range(0, len(self.items), ITEM_BLOCK):
                block = slice(start, start + ITEM_BLOCK)
                x = torch.addmm(self.item_part[block], self.items[block], product)
                x = x.add_(self.user_part[user]).relu_()
                for layer in self.model.hidden:
                    x = layer(x).relu_()
                out[row, block] = x @ self.model.output.weight[0]
        return out
