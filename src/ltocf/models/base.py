"""The contract of every model, and the three kinds there are: embeddings, graph filters of
embeddings, and closed forms of a user's history."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import BaseModel, Field
from scipy.sparse import csr_array
from torch import Tensor, nn

from ltocf.config import LossConfig
from ltocf.data.interactions import Rows
from ltocf.data.sampling import Batch, Scheme, TripleBatches
from ltocf.errors import ConfigError
from ltocf.graph import BipartiteGraph
from ltocf.models.layers import glorot_
from ltocf.models.losses import score_loss
from ltocf.models.pairs import half_norms, hardest, pair_scores
from ltocf.propagation.filter import chebyshev_filter, divide_by_x
from ltocf.propagation.filter import evaluate as evaluate_series
from ltocf.propagation.recent import RecentAdjacency
from ltocf.recency import check_recency, weigh, weighted_histories
from ltocf.spectral import singular_vectors


class Scorer(ABC):
    """The cheap map from users to the scores of every item; the expensive part is behind it."""

    @abstractmethod
    def __call__(self, users: Rows) -> Tensor:
        """Scores of all items for known users. (len(users), n_items)"""

    @abstractmethod
    def from_history(self, histories: csr_array) -> Tensor:
        """Scores of all items for anybody, from his history (see recency.py). (rows, n_items)"""


class Batches(Protocol):
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Batch]: ...


class ModelConfig(BaseModel, frozen=True, extra="forbid"):
    """`[model]` in a config file, without its name."""


class HistoryConfig(ModelConfig, frozen=True):
    # How fast what a user touched earlier counts less: weight (1 + how many came later)^-recency.
    recency: float = Field(default=0.0, ge=0)


class Model(nn.Module, ABC):
    """A model knows its training interactions through the graph and scores every item."""

    Config: ClassVar[type[ModelConfig]]
    trains_on_gpu: ClassVar[bool] = False

    def __init__(self, graph: BipartiteGraph, config: ModelConfig) -> None:
        super().__init__()
        self.graph = graph
        self.progress, self.noise = 0.0, torch.Generator()  # as before_step_() was told

    @abstractmethod
    def scorer(self) -> Scorer:
        """Do the expensive part once, without gradients."""

    def initialise_(self, seed: int) -> None:
        """Draw the parameters; for a closed form, compute what it needs."""

    def start_from_(self, weights: Mapping[str, Tensor]) -> None:
        """Take over the vectors of users and items, `weight`, of another model of these data."""
        own, theirs = dict(self.named_parameters()).get("weight"), weights.get("weight")
        if own is None:
            raise ConfigError(f"init: {type(self).__name__} has no vectors to start from others'")
        if theirs is None or theirs.shape != own.shape:
            found = "none" if theirs is None else f"some of dim {theirs.shape[1]}"
            raise ConfigError(
                f"init: needs a run with vectors of dim {own.shape[1]}, found {found}"
            )
        with torch.no_grad():
            own.copy_(theirs)

    def batches(
        self, loss: LossConfig, *, batch_size: int, scheme: Scheme, seed: int, epoch: int
    ) -> Batches:
        """One epoch of what `loss` takes."""
        return TripleBatches(
            self.graph.interactions,
            batch_size=batch_size,
            negatives=loss.negatives,
            seed=seed,
            epoch=epoch,
            scheme=scheme,
        )

    def loss(self, batch: Batch, loss: LossConfig) -> Tensor:
        """The mean loss of a batch. A closed form has none and is not iterated."""
        raise ConfigError(f"{type(self).__name__} is a closed form: it has no loss to train with")

    def time_parameters(self) -> list[nn.Parameter]:
        """Parameters that train with the time learning rate, in turn with the others."""
        return []

    def extracted_times(self) -> list[float]:
        """For the history: when an ODE's states are read, if it is one."""
        return []

    def before_step_(self, progress: float, seed: int) -> None:
        """Take the share of training that is done and a seed for what the loss draws, such as
        dropout; a resumed run is told the same."""
        self.progress = progress
        self.noise.manual_seed(seed)

    def after_step_(self) -> None:
        """Restore what an optimiser step may have broken."""


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


class FilterConfig(EmbeddingConfig, HistoryConfig, frozen=True):
    pass


class FilterModel(EmbeddingModel):
    """Final embeddings are h(A) E: a polynomial of the normalised adjacency, given by its
    Chebyshev coefficients, times the initial embeddings E.

    With `recency`, the last of the products with A weighs the items of each user's history.
    """

    trains_on_gpu = True

    def __init__(self, graph: BipartiteGraph, config: FilterConfig) -> None:
        super().__init__(graph, config)
        self.recency, self.recent = config.recency, None
        if config.recency:
            weights = weighted_histories(graph.interactions, config.recency)
            self.recent = RecentAdjacency(graph, weights)

    @abstractmethod
    def coefficients(self) -> Tensor:
        """Of h on [-1, 1], the lowest degree first."""

    def response(self, x: Tensor) -> Tensor:
        return evaluate_series(self.coefficients().detach(), x)

    def embeddings(self) -> Tensor:
        coefficients = self.coefficients()
        if self.recent is None:
            return chebyshev_filter(self.graph, self.weight, coefficients)
        own = evaluate_series(coefficients.cpu(), torch.zeros(1, dtype=torch.float64))[0]
        return own * self.weight + self.recent @ self._before_last_product(coefficients)

    def _before_last_product(self, coefficients: Tensor) -> Tensor:
        """g(A) E, where h(x) = h(0) + x g(x)."""
        return chebyshev_filter(self.graph, self.weight, divide_by_x(coefficients))

    def history_embeddings(self) -> Tensor:
        """The items' rows of g(A) E: a user's final vector is h(0) times his own plus A[u, j] times
        row j for every j of his history."""
        return self.graph.split(self._before_last_product(self.coefficients()))[1]


class OfHistories(Protocol):
    @property
    def graph(self) -> BipartiteGraph: ...
    def score_histories(self, histories: csr_array) -> Tensor:
        """Scores of all items for weighted rows of items. (rows, n_items)"""


class HistoryScorer(Scorer):
    def __init__(self, model: OfHistories, recency: float = 0.0) -> None:
        self.model, self.recency = model, recency
        self.train = weighted_histories(model.graph.interactions, recency)

    def __call__(self, users: Rows) -> Tensor:
        return self.model.score_histories(self.train[users])

    def from_history(self, histories: csr_array) -> Tensor:
        return self.model.score_histories(weigh(histories, self.recency))


class HistoryModel(Model):
    """A closed form: a user is what he has, so a known user and a new one are scored alike."""

    def __init__(self, graph: BipartiteGraph, config: ModelConfig) -> None:
        super().__init__(graph, config)
        self.recency = config.recency if isinstance(config, HistoryConfig) else 0.0
        check_recency(graph.interactions, self.recency)

    def initialise_(self, seed: int) -> None:
        for name, value in self.solve(seed).items():
            self.register_buffer(name, value)

    @abstractmethod
    def solve(self, seed: int) -> dict[str, Tensor]:
        """Everything `score_histories` needs; becomes buffers of these names."""

    @abstractmethod
    def score_histories(self, histories: csr_array) -> Tensor:
        """Scores of all items for weighted rows of items. (rows, n_items)"""

    def scorer(self) -> Scorer:
        return HistoryScorer(self, self.recency)

    def load_state_dict(self, state: dict[str, Tensor], *args: object, **kwargs: object) -> object:  # type: ignore[override]
        # Buffers are made by solve(), so a fresh model has none for torch to fill.
        for name, value in state.items():
            self.register_buffer(name, value)
        return None
