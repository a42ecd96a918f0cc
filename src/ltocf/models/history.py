"""Closed forms of a user's history: solved, not trained."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.data.histories import check_recency, weigh, weighted_histories
from ltocf.data.interactions import Rows
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, ModelConfig, Scorer


class HistoryConfig(ModelConfig, frozen=True):
    # How fast what a user touched earlier counts less: weight (1 + how many came later)^-recency.
    recency: float = Field(default=0.0, ge=0)


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
