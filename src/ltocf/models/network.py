"""Models that score a pair of vectors by a network instead of a dot product."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ltocf.batches.ahead import Batch
from ltocf.config import SHARED, Loss
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, PairScorer
from ltocf.models.embedding import VectorConfig
from ltocf.models.layers import glorot_, vectors_of_nodes
from ltocf.models.losses import score_loss
from ltocf.models.pair_scores import half_norms


class PairConfig(VectorConfig, frozen=True):
    network_l2: float = 0.0  # on the network's weights; loss.l2 is on the batch's vectors


class PairModel(Model):
    """`weight` has a vector for every user and item, users first."""

    config: PairConfig

    def __init__(self, graph: BipartiteGraph, config: PairConfig) -> None:
        super().__init__(graph, config)
        self.weight = vectors_of_nodes(graph.n_nodes, config.dim)

    def draw_(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.weight.normal_(0, self.config.initial_std, generator=generator)
        glorot_(self, generator)

    @abstractmethod
    def score(self, users: Tensor, items: Tensor) -> Tensor:
        """The scores of items (batch, n) for users (batch,), with gradients. (batch, n)"""

    @abstractmethod
    def penalised(self) -> list[Tensor]:
        """What `network_l2` acts on."""

    def loss(self, batch: Batch, loss: Loss) -> Tensor:
        device = self.weight.device
        users, negatives = batch.users.to(device), batch.negatives.to(device)
        positives = batch.positives[:, None].to(device)
        if loss.sampling == "hardest":
            with torch.no_grad():
                best = self.score(users, negatives).argmax(1, keepdim=True)
            negatives = negatives.gather(1, best)
        if loss.sampling == "shared":
            negatives = negatives.flatten()[: loss.negatives or SHARED].expand(len(users), -1)
        scores = self.score(users, torch.cat([positives, negatives], 1))
        thresholds = None if batch.thresholds is None else batch.thresholds.to(scores)
        total = score_loss(scores[:, 0], scores[:, 1:], loss, thresholds)
        if l2 := self.l2(loss):
            n_users = self.graph.n_users
            rows = users, positives + n_users, negatives + n_users
            total = total + l2 * half_norms(self.weight, *rows)
        if self.config.network_l2:
            squares = [weight.square().sum() for weight in self.penalised()]
            total = total + self.config.network_l2 / 2 * torch.stack(squares).sum()
        return total

    def pair_scorer(self) -> PairScorer:
        device = self.weight.device
        return torch.no_grad()(lambda users, items: self.score(users.to(device), items.to(device)))

    def vectors(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, 1, dim) of the users and (batch, n, dim) of the items."""
        own = F.embedding(users, self.weight)[:, None]
        return own, F.embedding(items + self.graph.n_users, self.weight)

    def arrays(self, *layers: str) -> dict[str, NDArray[Any]]:
        """The vectors of users and items and the parameters of these layers, by name, as a scorer
        takes them."""
        users, items = self.graph.split(self.weight.detach().cpu())
        state = {name: value.cpu().numpy() for name, value in self.state_dict().items()}
        chosen = {name: value for name, value in state.items() if name.split(".")[0] in layers}
        return chosen | {"users": users.numpy(), "items": items.numpy()}
