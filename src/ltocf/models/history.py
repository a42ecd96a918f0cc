"""Closed forms of a user's history: solved, not trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np
import torch
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Interactions, Rows
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, ModelConfig
from ltocf.models.scorer import NOBODY, Scorer, Terms

SINGLES = 256  # histories of one item that are scored at a time
CACHE_LINE = 64  # bytes
EXACT = 1e-4  # of the largest score: how far float32 may be from an exact split


class HistoryConfig(ModelConfig, frozen=True):
    # How fast what a user touched earlier counts less: weight (1 + how many came later)^-recency.
    recency: float = Field(default=0.0, ge=0)


class HistoryModel(Model):
    """A closed form: a user is what they have, so a known user and a new one are scored alike.

    `fitted` is all that it is, by name; a subclass without `recency` in its config weighs every
    item of a history alike.
    """

    losses: ClassVar[tuple[str, ...]] = ()
    solved: ClassVar[bool] = True

    def __init__(self, graph: BipartiteGraph, config: ModelConfig) -> None:
        super().__init__(graph, config)
        self.history_weights = HistoryWeights(getattr(config, "recency", 0.0), graph.interactions)
        self.history_weights.check(graph.interactions)
        self.fitted: dict[str, Tensor] = {}

    def solve_(self, seed: int) -> None:
        # Row-major from the start, as files hold it: a product rounds by the order of its operands.
        self.fitted = {name: value.contiguous() for name, value in self.solve(seed).items()}

    @abstractmethod
    def solve(self, seed: int) -> dict[str, Tensor]:
        """Everything `score_histories` needs; becomes `fitted`."""

    @abstractmethod
    def score_histories(self, histories: csr_array) -> Tensor:
        """Scores of all items for weighted rows of items. (rows, n_items)"""

    def fitted_state(self) -> dict[str, Tensor]:
        return self.fitted

    def restore_(self, state: Mapping[str, Tensor]) -> None:
        self.fitted = {name: _aligned(value) for name, value in state.items()}

    def scorer(self) -> Scorer:
        return HistoryScorer(self, self.history_weights)


class OfHistories(Protocol):
    @property
    def graph(self) -> BipartiteGraph: ...
    def score_histories(self, histories: csr_array) -> Tensor:
        """Scores of all items for weighted rows of items. (rows, n_items)"""


class HistoryScorer(Scorer):
    """Of a model to which a user is what they have."""

    def __init__(self, model: OfHistories, weights: HistoryWeights) -> None:
        self.model, self.weights = model, weights
        self.train = weights.of(model.graph.interactions)

    def __call__(self, users: Rows) -> Tensor:
        return self.model.score_histories(self.train[users])

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Tensor:
        return self.model.score_histories(self.weights.weigh(histories, own))

    def with_recency(self, recency: float) -> Scorer:
        return HistoryScorer(self.model, HistoryWeights(recency, self.weights.train))

    def similar_items(self, items: Rows) -> Tensor:
        """The scores that somebody gives who has that item alone."""
        ones = np.ones(len(items), dtype=np.float32)
        alone = (ones, items, np.arange(len(items) + 1))
        return self.from_history(csr_array(alone, shape=(len(items), self.train.shape[1])))

    def similar_users(self, users: Rows) -> Tensor:
        """The cosines of their 0/1 histories."""
        unit = _unit_rows(self.model.graph.interactions)
        return torch.from_numpy((unit[users] @ unit.T).toarray())

    @torch.no_grad()
    def explain(self, readout: Tensor, history: csr_array, user: int = NOBODY) -> Terms:
        """What each item alone adds to the scores of nobody, if those sum to the scores of all.

        Some closed forms divide a whole row by its user's degree: they are sums up to one factor,
        the same for all items. Both are checked on every item, so a model that is no sum cannot
        slip by.
        """
        weighted = self.weights.weigh(history, np.array([user], dtype=np.int32))
        n_items = len(readout)

        def score(histories: csr_array) -> Tensor:
            return self.model.score_histories(histories).double().cpu()

        whole, nothing = score(weighted)[0], score(csr_array(np.zeros((1, n_items), np.float32)))[0]
        terms, total = np.empty(history.nnz), torch.zeros_like(whole)
        for start in range(0, history.nnz, SINGLES):
            some = slice(start, min(start + SINGLES, history.nnz))
            count = some.stop - some.start
            singles = (weighted.data[some], weighted.indices[some], np.arange(count + 1))
            added = score(csr_array(singles, shape=(count, n_items))) - nothing
            terms[some] = (added @ readout).numpy()
            total += added.sum(0)
        factor = float((whole - nothing) @ total / (total @ total)) if total.any() else 1.0
        if (whole - nothing - factor * total).abs().max() > EXACT * whole.abs().max():
            raise ConfigError(
                "this model's score is not a sum over the user's history, so it has no exact "
                "reasons; use ltocf, lightgcn or a linear filter such as gfcf"
            )
        return Terms(float(nothing @ readout), terms * factor)


def _aligned(value: Tensor) -> Tensor:
    """The tensor where torch would have put it: a product of arrays that begin within a cache line,
    as those of a mapped file may, can round otherwise."""
    return value if value.data_ptr() % CACHE_LINE == 0 else value.clone()


def _unit_rows(train: Interactions) -> csr_array:
    values = (1 / np.sqrt(np.maximum(train.user_degrees, 1)))[train.users].astype(np.float32)
    return csr_array((values, train.items, train.indptr), shape=(train.n_users, train.n_items))
