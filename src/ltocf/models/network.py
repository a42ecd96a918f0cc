"""Models that score a pair of vectors by a network instead of a dot product."""

from __future__ import annotations

from abc import abstractmethod

import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import Tensor, nn

from ltocf.batches.triples import Batch
from ltocf.config import LossConfig
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, Scorer
from ltocf.models.embedding import EmbeddingConfig
from ltocf.models.layers import glorot_
from ltocf.models.losses import score_loss
from ltocf.models.pair_scores import half_norms


class PairConfig(EmbeddingConfig, frozen=True):
    network_l2: float = 0.0  # on the network's weights; loss.l2 is on the batch's vectors


class PairModel(Model):
    """`weight` has a vector for every user and item, users first."""

    def __init__(self, graph: BipartiteGraph, config: PairConfig) -> None:
        super().__init__(graph, config)
        self.initial_std, self.network_l2 = config.initial_std, config.network_l2
        self.weight = nn.Parameter(torch.zeros(graph.n_nodes, config.dim))

    def initialise_(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.weight.normal_(0, self.initial_std, generator=generator)
        glorot_(self, generator)

    @abstractmethod
    def score(self, users: Tensor, items: Tensor) -> Tensor:
        """The scores of items (batch, n) for users (batch,), with gradients. (batch, n)"""

    @abstractmethod
    def penalised(self) -> list[Tensor]:
        """What `network_l2` acts on."""

    def loss(self, batch: Batch, loss: LossConfig) -> Tensor:
        device = self.weight.device
        users, negatives = batch.users.to(device), batch.negatives.to(device)
        positives = batch.positives[:, None].to(device)
        if loss.hardest:
            with torch.no_grad():
                best = self.score(users, negatives).argmax(1, keepdim=True)
            negatives = negatives.gather(1, best)
        if loss.shared:
            negatives = negatives.flatten()[: loss.shared].expand(len(users), -1)
        scores = self.score(users, torch.cat([positives, negatives], 1))
        total = score_loss(scores[:, 0], scores[:, 1:], loss)
        if loss.l2:
            n_users = self.graph.n_users
            rows = users, positives + n_users, negatives + n_users
            total = total + loss.l2 * half_norms(self.weight, *rows)
        if self.network_l2:
            squares = [weight.square().sum() for weight in self.penalised()]
            total = total + self.network_l2 / 2 * torch.stack(squares).sum()
        return total

    def vectors(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, 1, dim) of the users and (batch, n, dim) of the items."""
        own = F.embedding(users, self.weight)[:, None]
        return own, F.embedding(items + self.graph.n_users, self.weight)


class PairScorer(Scorer):
    def __init__(self, model: PairModel) -> None:
        self.users, self.items = model.graph.split(model.weight.detach())

    def from_history(self, histories: csr_array) -> Tensor:
        raise ConfigError(
            "this model has a vector for each user of its training data and none for new ones; "
            "use ltocf, lightgcn or a closed form such as gfcf to recommend from a history"
        )
