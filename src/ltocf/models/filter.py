"""Models whose final embeddings are a polynomial of the graph times the initial ones."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from ltocf.data.histories import weighted_histories
from ltocf.filters.chebyshev import chebyshev_filter, divide_by_x
from ltocf.filters.chebyshev import evaluate as evaluate_series
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.weighted import RecentAdjacency
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel
from ltocf.models.history import HistoryConfig


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
