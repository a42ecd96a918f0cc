"""Models that have a vector for every user and item and score by dot product."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor, nn

from ltocf.batches.triples import Batch
from ltocf.config import LossConfig
from ltocf.data.histories import weigh
from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.spectrum import singular_vectors
from ltocf.models.base import Model, ModelConfig, Scorer
from ltocf.models.layers import glorot_
from ltocf.models.losses import score_loss
from ltocf.models.pair_scores import half_norms, hardest, pair_scores


class DotScorer(Scorer):
    """Scores are dot products. A new user's vector is a weighted sum over his history."""

    def __init__(
        self,
        users: Tensor,
        items: Tensor,
        graph: BipartiteGraph,
        history: Tensor | None = None,
        recency: float = 0.0,
    ) -> None:
        self.users, self.items, self.history, self.graph = users, items, history, graph
        self.recency = recency

    def __call__(self, users: Rows) -> Tensor:
        return self.users[torch.from_numpy(users.astype(np.int64))] @ self.items.T

    def from_history(self, histories: csr_array) -> Tensor:
        return self.fold_in(histories) @ self.items.T

    def fold_in(self, histories: csr_array) -> Tensor:
        """The vectors of users with these histories and nothing of their own. (rows, dim)"""
        if self.history is None:
            raise ConfigError(
                "this model has a vector for each user of its training data and none for new ones; "
                "use ltocf, lightgcn or a closed form such as gfcf to recommend from a history, "
                "or let steps=50 (--steps 50) gradient steps find one"
            )
        weights = normalise_rows(weigh(histories, self.recency), self.graph)
        return torch.from_numpy(weights @ self.history.cpu().numpy()).to(self.items.device)


def normalise_rows(histories: csr_array, graph: BipartiteGraph) -> csr_array:
    """The rows that users with these weighted histories would have in the normalised adjacency."""
    counts = np.diff(histories.indptr)
    item_degrees = np.maximum(graph.interactions.item_degrees[histories.indices], 1)
    values = histories.data / np.sqrt(np.repeat(counts, counts) * item_degrees)
    arrays = (values.astype(np.float32), histories.indices, histories.indptr)
    return csr_array(arrays, shape=histories.shape)


class EmbeddingConfig(ModelConfig, frozen=True):
    dim: int = Field(default=64, ge=1)
    initial_std: float = Field(default=0.1, gt=0)
    start: Literal["random", "spectral"] = "random"
    # Score by cosine: final embeddings on the unit sphere. "training": in the loss only, so that
    # the ranking is by dot product and the length of an item's vector, its popularity, counts.
    normalise: bool | Literal["training"] = False


class EmbeddingModel(Model):
    """A vector for every user and item, users first, scored by dot product."""

    recency = 0.0
    penalise_final: ClassVar[bool] = False  # l2 on the final embeddings, not on the initial ones

    def __init__(self, graph: BipartiteGraph, config: EmbeddingConfig) -> None:
        super().__init__(graph, config)
        self.initial_std, self.normalise = config.initial_std, config.normalise
        self.start = config.start
        self.weight = nn.Parameter(torch.zeros(graph.n_nodes, config.dim))

    def initialise_(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.weight.normal_(0, self.initial_std, generator=generator)
            if self.start == "spectral":
                start = self._spectral_start()
                # Some noise, since training from the vectors alone would stay in their span.
                self.weight.mul_(start.std()).add_(start)
        glorot_(self, generator)

    def _spectral_start(self) -> Tensor:
        """Initial embeddings whose final ones score as the best approximation of the normalised
        interactions of rank `dim`, times a factor that gives the final ones the usual size."""
        vectors = singular_vectors(self.graph, self.weight.shape[1])
        values = vectors.values.clamp(max=1)  # but for rounding they lie there
        final = torch.cat([vectors.users(self.graph), vectors.items]) * values.sqrt().float()
        final *= self.initial_std / final.square().mean().sqrt()
        initial = final / self.response(values).float()
        return F.pad(initial, (0, self.weight.shape[1] - initial.shape[1]))

    def response(self, x: Tensor) -> Tensor:
        """By what the model multiplies an eigenvector of the graph with eigenvalue x."""
        return torch.ones_like(x)

    @abstractmethod
    def embeddings(self) -> Tensor:
        """The final embeddings. (n_users + n_items, dim)"""

    def history_embeddings(self) -> Tensor | None:
        """What a new user's vector is a weighted sum of, if it is. (n_items, dim)"""
        return None

    def _scored(self) -> Tensor:
        final = self.embeddings()
        return F.normalize(final) if self.normalise else final

    @torch.no_grad()
    def scorer(self) -> DotScorer:
        final = self.embeddings() if self.normalise == "training" else self._scored()
        users, items = self.graph.split(final.detach())
        history = self.history_embeddings()
        return DotScorer(users, items.contiguous(), self.graph, history, self.recency)

    def loss(self, batch: Batch, loss: LossConfig) -> Tensor:
        table = self._scored()
        n_users, device = self.graph.n_users, table.device
        users = batch.users.to(device)
        positives = batch.positives[:, None].to(device) + n_users
        negatives = batch.negatives.to(device) + n_users
        if loss.hardest:
            negatives = hardest(table, users, negatives)
        if loss.shared:
            # The batch's first negatives are as uniform as any; one product scores them all.
            shared = F.embedding(negatives.flatten()[: loss.shared], table)
            positive = pair_scores(table, users, positives)[:, 0]
            negative = F.embedding(users, table) @ shared.T
        else:
            scores = pair_scores(table, users, torch.cat([positives, negatives], 1))
            positive, negative = scores[:, 0], scores[:, 1:]
        penalised = table if self.penalise_final else self.weight
        penalty = half_norms(penalised, users, positives, negatives) if loss.l2 else 0
        return score_loss(positive, negative, loss) + loss.l2 * penalty
