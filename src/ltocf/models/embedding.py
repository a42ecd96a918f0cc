"""Models that have a vector for every user and item and score by dot product."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.config import Loss
from ltocf.distributed import Columns
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.spectrum import SingularVectors, singular_vectors
from ltocf.models.base import Model, ModelConfig, PairScorer
from ltocf.models.batch_loss import batch_loss
from ltocf.models.layers import glorot_, vectors_of_nodes
from ltocf.models.losses import score_loss
from ltocf.models.pair_scores import dot_products, squared_norms
from ltocf.scorers.dot import DotScorer, FoldIn

SMALLEST_VALUE = 1e-4  # vectors of smaller singular values are rounding errors
# Relative to the response's largest value. The spectral start divides by the response; where that
# is smaller than this, the quotient would be huge, and the response is not known that exactly.
SMALLEST_RESPONSE = 1e-2


class VectorConfig(ModelConfig, frozen=True):
    dim: int = Field(default=64, ge=1)  # of a vector
    initial_std: float = Field(default=0.1, gt=0)  # of the vectors at the start


class EmbeddingConfig(VectorConfig, frozen=True):
    start: Literal["random", "spectral"] = "spectral"  # from the graph's leading singular vectors
    # Score by cosine: final embeddings on the unit sphere. "training" does so in the loss only;
    # lists are then ranked by dot product, where the length of an item's vector, which reflects its
    # popularity, counts.
    normalise: bool | Literal["training"] = False
    # The weight of log(1 + n_i), which is added to the scores, in their standard deviations. None
    # lets validation choose it; without validation it is 0.
    popularity: float | None = Field(default=None, ge=0)


class EmbeddingModel(Model):
    """A vector for every user and item, users first, scored by dot product."""

    config: EmbeddingConfig
    penalise_final: ClassVar[bool] = False  # l2 on the final embeddings, not on the initial ones

    def __init__(self, graph: BipartiteGraph, config: EmbeddingConfig) -> None:
        super().__init__(graph, config)
        self.weight = vectors_of_nodes(graph.n_nodes, config.dim)
        self.columns = Columns(config.dim if self.splits_columns else None)
        # The normalised adjacency removes popularity, and vectors with few pairs cannot learn it
        # back. So it is added to the finished scores.
        self.popularity: Tensor
        weight = torch.tensor(config.popularity or 0.0, dtype=torch.float64)
        self.register_buffer("popularity", weight)

    @property
    def splits_columns(self) -> bool:
        """Whether each column of the final embeddings depends on the same column of the initial
        ones only, so that each process can compute some of the columns."""
        return False

    def draw_(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.weight.normal_(0, self.config.initial_std, generator=generator)
            if self.config.start == "spectral":
                start = self._spectral_start()
                # With noise, since training from the vectors alone would stay in their span.
                self.weight.mul_(start.std()).add_(start)
        glorot_(self, generator)

    def _spectral_start(self) -> Tensor:
        """Initial embeddings for which the final ones score like the best rank-`dim` approximation
        of the normalised interactions, scaled so that the final ones have the usual size."""
        vectors = singular_vectors(self.graph, self.weight.shape[1], progress=self.report)
        rank = int((vectors.values > SMALLEST_VALUE).sum())
        vectors = SingularVectors(vectors.values[:rank], vectors.items[:, :rank])
        values = vectors.values.clamp(max=1)  # rounding may put them slightly above 1
        final = torch.cat([vectors.users(self.graph), vectors.items]) * values.sqrt().float()
        final *= self.config.initial_std / final.square().mean().sqrt()
        # See SMALLEST_RESPONSE: dividing by a vanishing response would make the start explode.
        least = SMALLEST_RESPONSE * float(self.response(torch.ones(1, dtype=torch.float64)))
        initial = final / self.response(values).clamp(min=least).float()
        return F.pad(initial, (0, self.weight.shape[1] - initial.shape[1]))

    def response(self, x: Tensor) -> Tensor:
        """The factor that an eigenvector of the graph with eigenvalue x is multiplied by."""
        return torch.ones_like(x)

    @abstractmethod
    def embeddings(self) -> Tensor:
        """The final embeddings. (n_users + n_items, dim)"""

    def ranking_embeddings(self) -> Tensor:
        """The final embeddings as lists use them: where recency counts, users' follow from their
        weighted histories."""
        return self.embeddings()

    def fold_in(self) -> FoldIn | None:
        """How a new user's vector follows from their history, if it does."""
        return None

    def _scored(self) -> Tensor:
        final = self.embeddings()
        return self._unit_rows(final) if self.config.normalise else final

    def _unit_rows(self, table: Tensor) -> Tensor:
        if not self.columns.is_split:
            return F.normalize(table)
        squares = self.columns.total_for_own(table.square().sum(1, keepdim=True))
        return table / squares.sqrt().clamp(min=1e-12)

    @torch.no_grad()
    def scorer(self) -> DotScorer:
        unit = self.config.normalise is True
        final = self.ranking_embeddings()
        final = self._unit_rows(final) if unit else final
        fold = self.fold_in()
        if self.columns.is_split:  # every process ranks some users, for which it needs whole rows
            final, fold = self.columns.joined(final), None
        users, items = self.graph.split(final.detach().cpu())
        dots = DotScorer(users.numpy(), items.numpy(), self.graph.interactions, fold, unit=unit)
        return dots.with_popularity(float(self.popularity))

    @property
    def undecided(self) -> tuple[str, ...]:
        return ("popularity",) if self.config.popularity is None else ()

    def take_learned_from_(self, other: Self) -> None:
        self.popularity.copy_(other.popularity)

    def loss(self, batch: Batch, loss: Loss) -> Tensor:
        return self.batch_loss(ChunkedBatch.of(batch), loss)

    def add_gradients_(self, batch: ChunkedBatch, loss: Loss) -> float:
        mean = self.batch_loss(batch, loss)
        mean.backward()  # type: ignore[no-untyped-call]
        return float(mean.detach())

    def batch_loss(self, batch: ChunkedBatch, loss: Loss) -> Tensor:
        """The mean loss of a batch: one propagation for all of its chunks."""
        table = self._scored()
        mean, counts = batch_loss(
            table,
            batch,
            self.graph.n_users,
            loss,
            lambda near, far, thresholds: self.loss_of_scores(near, far, loss, thresholds),
            self.columns,
            self.graph.empty_like,
        )
        l2 = self.l2(loss)
        if not l2:
            return mean
        penalised = table if self.penalise_final else self.weight
        norms = squared_norms(penalised, counts, self.graph.empty_like)
        return mean + l2 / (2 * batch.rows) * self.columns.total(norms)

    def loss_of_scores(
        self, near: Tensor, far: Tensor, loss: Loss, thresholds: Tensor | None
    ) -> Tensor:
        """The mean loss of the scores of positives (n, orders) and of negatives (n, any)."""
        return score_loss(near[:, 0], far, loss, thresholds)

    @torch.no_grad()
    def pair_scorer(self) -> PairScorer:
        table, n_users = self._scored().detach(), self.graph.n_users

        def scores(users: Tensor, items: Tensor) -> Tensor:
            rows = users.to(table.device), (items + n_users).to(table.device)
            return self.columns.total(dot_products(table, *rows))

        return scores
