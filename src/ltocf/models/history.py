"""Closed forms of a user's history: solved, not trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ltocf.data.histories import HistoryWeights
from ltocf.data.item_tags import tags_as_users
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, ModelConfig


class HistoryConfig(ModelConfig, frozen=True):
    # How fast what a user touched earlier counts less: weight (1 + how many came later)^-recency.
    recency: float = Field(default=0.0, ge=0)


class TagConfig(ModelConfig, frozen=True):
    # How much a tag of the items counts, as a user who has all its items; 0 leaves tags out.
    tag_weight: float = Field(default=0.0, ge=0)


class TaggedConfig(HistoryConfig, TagConfig, frozen=True):
    pass


class HistoryModel(Model):
    """A closed form: a user is what they have, so a known user and a new one are scored alike.

    `fitted` is all that it is, by name; a subclass without `recency` in its config weighs every
    item of a history alike. With a `tag_weight`, `graph` has the tags of touched items as further
    nodes; `people` are the users alone.
    """

    losses: ClassVar[tuple[str, ...]] = ()

    def __init__(self, graph: BipartiteGraph, config: ModelConfig) -> None:
        people, tag_weight = graph.interactions, getattr(config, "tag_weight", 0.0)
        if tag_weight:
            graph = BipartiteGraph(tags_as_users(people, tag_weight))
        super().__init__(graph, config)
        self.people, self.tag_weight = people, tag_weight
        self.history_weights = HistoryWeights(getattr(config, "recency", 0.0), people)
        self.history_weights.check(people)
        self.fitted: dict[str, Tensor] = {}

    @classmethod
    def solved(cls, config: ModelConfig | None = None) -> bool:
        return True

    def solve_(self, seed: int) -> None:
        # Row-major from the start, as files hold it: a product rounds by the order of its operands.
        self.fitted = {name: value.contiguous() for name, value in self.solve(seed).items()}

    @abstractmethod
    def solve(self, seed: int) -> dict[str, Tensor]:
        """Everything that the scorer needs; becomes `fitted`."""

    def fitted_state(self) -> dict[str, Tensor]:
        return self.fitted

    def restore_(self, state: Mapping[str, Tensor]) -> None:
        self.fitted = dict(state)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is fitted, as the scorer takes it: the same memory."""
        return {name: value.numpy() for name, value in self.fitted.items()}
