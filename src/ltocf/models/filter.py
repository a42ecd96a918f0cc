"""Models whose final embeddings are a polynomial of the graph times the initial ones."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal, Self

import torch
from pydantic import Field
from torch import Tensor

from ltocf.data.histories import HistoryWeights
from ltocf.data.item_tags import tags_as_users
from ltocf.filters.chebyshev import chebyshev_filter, divide_by_x
from ltocf.filters.chebyshev import evaluate as evaluate_series
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Response
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel
from ltocf.models.history import TagConfig
from ltocf.scorers.dot import FoldIn


class FilterConfig(EmbeddingConfig, TagConfig, frozen=True):
    # How fast what a user touched earlier counts less: weight (1 + how many came later)^-recency.
    # None lets validation choose it once the model is trained, where times are known, unless
    # `popularity` is given; otherwise it is 0.
    recency: float | None = Field(default=None, ge=0)
    # The response at eigenvalue 1, where it is largest; "natural" keeps the method's own value.
    scale: Annotated[float, Field(gt=0)] | Literal["natural"] = "natural"


class FilterModel(EmbeddingModel):
    """Final embeddings are h(A) E: a polynomial of the normalised adjacency, given by its
    Chebyshev coefficients, times the initial embeddings E.

    With `recency`, lists are made with the users' rows of the last product with A weighted towards
    their latest items. Training knows nothing of it: embeddings that adapt to the weights rank no
    better (research/experiments-log.md), so recency can be chosen after training. With a
    `tag_weight`, A belongs to a bigger graph, `whole`, in which the tags of touched items are
    nodes too, which start from zeros. An item that nobody has touched is none, and has zeros.
    """

    trains_on_gpu = True

    config: FilterConfig

    def __init__(self, graph: BipartiteGraph, config: FilterConfig) -> None:
        super().__init__(graph, config)
        self.scale = config.scale
        train = graph.interactions
        self.whole, self.n_tags = graph, 0
        if config.tag_weight:
            self.whole = BipartiteGraph(tags_as_users(train, config.tag_weight))
            self.n_tags = self.whole.n_users - graph.n_users
        self.recency: Tensor
        self.register_buffer("recency", torch.zeros((), dtype=torch.float64))
        self.history_weights.check(train)

    @property
    def history_weights(self) -> HistoryWeights:
        given, chosen = self.config.recency, float(self.recency)
        return HistoryWeights(chosen if given is None else given, self.graph.interactions)

    @property
    def undecided(self) -> tuple[str, ...]:
        others, timed = super().undecided, self.graph.interactions.timestamps is not None
        return ("recency", *others) if others and timed and self.config.recency is None else others

    def take_learned_from_(self, other: Self) -> None:
        super().take_learned_from_(other)
        self.recency.copy_(other.recency)

    @abstractmethod
    def natural_coefficients(self) -> Tensor:
        """Chebyshev coefficients of the method's own response on [-1, 1], lowest degree first."""

    def coefficients(self) -> Tensor:
        """Chebyshev coefficients of h, the response with `scale`, lowest degree first."""
        natural = self.natural_coefficients()
        return natural * self.factor(natural.sum())  # T_k(1) = 1 for every k

    def factor(self, at_one: Tensor) -> Tensor | float:
        """The factor that turns the method's own response at 1 into `scale`."""
        return 1.0 if self.scale == "natural" else self.scale / at_one

    def response(self, x: Tensor) -> Tensor:
        return evaluate_series(self.coefficients().detach(), x)

    def responses(self) -> dict[str, Response]:
        return {type(self).__name__: self.response}

    @property
    def splits_columns(self) -> bool:
        return True

    def initial(self) -> Tensor:
        """E; if tags are nodes, their rows come after the users'. (whole.n_nodes, dim)"""
        if not self.n_tags:
            return self.weight
        users, items = self.graph.split(self.weight)
        touched = torch.from_numpy(self.graph.interactions.item_degrees > 0).to(items.device)
        return torch.cat(
            [users, users.new_zeros(self.n_tags, users.shape[1]), items * touched[:, None]]
        )

    def without_tags(self, table: Tensor) -> Tensor:
        """The rows of users and items alone."""
        if not self.n_tags:
            return table
        n_users = self.graph.n_users
        return torch.cat([table[:n_users], table[n_users + self.n_tags :]])

    def embeddings(self) -> Tensor:
        return self.filtered(self.columns.shared(self.coefficients()))

    def filtered(self, coefficients: Tensor) -> Tensor:
        """The initial embeddings, filtered by the response that has these coefficients."""
        return self.without_tags(chebyshev_filter(self.whole, self.initial(), coefficients))

    def ranking_embeddings(self) -> Tensor:
        final = self.embeddings()
        if not self.history_weights.recency:
            return final
        fold = self._fold_in(self.columns.shared(self.coefficients()))
        users = fold.of_known(self.graph.interactions)
        return torch.cat([torch.from_numpy(users).to(final), self.graph.split(final)[1]])

    def _before_last_product(self, coefficients: Tensor) -> Tensor:
        """g(A) E, where h(x) = h(0) + x g(x)."""
        return chebyshev_filter(self.whole, self.initial(), divide_by_x(coefficients))

    def fold_in(self) -> FoldIn:
        return self._fold_in(self.coefficients())

    def _fold_in(self, coefficients: Tensor) -> FoldIn:
        """A user's final vector is h(0) times their own plus A[u, j] times row j of g(A) E for
        every j of their history."""
        own = self.graph.split(self.weight.detach().cpu())[0].numpy()
        history = self.whole.split(self._before_last_product(coefficients).detach().cpu())[1]
        scale = float(at_zero(coefficients.detach()))
        tag_weight = self.config.tag_weight
        return FoldIn(own, scale, history.numpy(), self.history_weights, tag_weight)


def at_zero(coefficients: Tensor) -> Tensor:
    """h(0)."""
    return evaluate_series(coefficients.cpu(), torch.zeros(1, dtype=torch.float64))[0]
