"""Models whose final embeddings are a polynomial of the graph times the initial ones."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from ltocf.data.histories import HistoryWeights
from ltocf.distributed import used_by_columns
from ltocf.filters.chebyshev import chebyshev_filter, divide_by_x
from ltocf.filters.chebyshev import evaluate as evaluate_series
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.weighted import WeightedAdjacency
from ltocf.models.base import Response
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel
from ltocf.models.history import HistoryConfig
from ltocf.scorers.dot import FoldIn


class FilterConfig(EmbeddingConfig, HistoryConfig, frozen=True):
    # What the response is at 1, its largest value; "natural" leaves it as the method has it.
    scale: Annotated[float, Field(gt=0)] | Literal["natural"] = "natural"


class FilterModel(EmbeddingModel):
    """Final embeddings are h(A) E: a polynomial of the normalised adjacency, given by its
    Chebyshev coefficients, times the initial embeddings E.

    With `recency`, the last of the products with A weighs the items of each user's history.
    """

    trains_on_gpu = True

    def __init__(self, graph: BipartiteGraph, config: FilterConfig) -> None:
        super().__init__(graph, config)
        self.scale = config.scale
        train = graph.interactions
        self.history_weights, self.recent = HistoryWeights(config.recency, train), None
        if config.recency:
            self.recent = WeightedAdjacency(graph, HistoryWeights(config.recency).of(train))

    @abstractmethod
    def natural_coefficients(self) -> Tensor:
        """Of the method's own response on [-1, 1], the lowest degree first."""

    def coefficients(self) -> Tensor:
        """Of h, the response with `scale`, the lowest degree first."""
        natural = self.natural_coefficients()
        return natural * self.factor(natural.sum())  # T_k(1) = 1 for every k

    def factor(self, at_one: Tensor) -> Tensor | float:
        """What makes `scale` of the method's own response at 1."""
        return 1.0 if self.scale == "natural" else self.scale / at_one

    def response(self, x: Tensor) -> Tensor:
        return evaluate_series(self.coefficients().detach(), x)

    def responses(self) -> dict[str, Response]:
        return {type(self).__name__: self.response}

    @property
    def splits_columns(self) -> bool:
        return True

    def embeddings(self) -> Tensor:
        coefficients = used_by_columns(self.coefficients())
        if self.recent is None:
            return chebyshev_filter(self.graph, self.weight, coefficients)
        before_last = self._before_last_product(coefficients)
        return at_zero(coefficients) * self.weight + self.recent @ before_last

    def _before_last_product(self, coefficients: Tensor) -> Tensor:
        """g(A) E, where h(x) = h(0) + x g(x)."""
        return chebyshev_filter(self.graph, self.weight, divide_by_x(coefficients))

    def fold_in(self) -> FoldIn:
        """A user's final vector is h(0) times their own plus A[u, j] times row j of g(A) E for
        every j of their history."""
        coefficients = self.coefficients()
        own = self.graph.split(self.weight.detach().cpu())[0].numpy()
        history = self.graph.split(self._before_last_product(coefficients).detach().cpu())[1]
        scale = float(at_zero(coefficients.detach()))
        return FoldIn(own, scale, history.numpy(), self.history_weights)


def at_zero(coefficients: Tensor) -> Tensor:
    """h(0)."""
    return evaluate_series(coefficients.cpu(), torch.zeros(1, dtype=torch.float64))[0]
