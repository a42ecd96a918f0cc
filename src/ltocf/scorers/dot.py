"""Scores that are dot products of the final vectors, with new users folded in."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltocf.data.histories import HistoryWeights, histories_of
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.item_tags import tags_as_users
from ltocf.ranking.sums import dot_products
from ltocf.ranking.top_k import Products
from ltocf.scorers.scorer import (
    NOBODY,
    Formula,
    Parts,
    Scorer,
    Scores,
    Terms,
    Vectors,
    cosines,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHORTEST = 1e-12  # a length that is divided by


class FoldIn(NamedTuple):
    """How a user's vector follows from a history: `scale` times their own row, plus a weighted sum
    of the history's rows."""

    own: Scores  # (n_users, dim)
    scale: float
    history: Scores  # (n_items, dim)
    weights: HistoryWeights
    tag_weight: float = 0.0  # of tags as further nodes of the graph

    def of_known(self, train: Interactions) -> Scores:
        """The vectors of the users in training, by their own histories. (n_users, dim)"""
        own = np.arange(train.n_users, dtype=np.int32)
        strengths = tags_as_users(train, self.tag_weight).item_strengths
        vectors: Scores = self.weights.normalise(histories_of(train), strengths, own) @ self.history
        vectors += self.own * np.float32(self.scale)
        return vectors


class DotScorer(Scorer):
    """Dot products, plus what an item has with everybody if there is a `bias`.

    `unit` says that vectors are scaled to length 1."""

    kind = "dot products"

    def __init__(
        self,
        users: Scores,
        items: Scores,
        train: Interactions,
        fold: FoldIn | None = None,
        *,
        unit: bool = False,
        bias: Scores | None = None,
    ) -> None:
        self.users, self.items, self.train, self.fold, self.unit = users, items, train, fold, unit
        self.bias = bias

    def with_popularity(self, weight: float) -> DotScorer:
        """The same with `weight * log(1 + n_i)` added to the scores, in their standard deviations;
        n_i counts the users who have item i."""
        bias = weight * self.spread * np.log1p(self.train.item_degrees)
        return DotScorer(
            self.users, self.items, self.train, self.fold,
            unit=self.unit, bias=bias.astype(np.float32) if weight else None,
        )  # fmt: skip

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the dot products of one user: the root mean square of all."""
        users, items = (table.astype(np.float64) for table in (self.users, self.items))
        items -= items.mean(axis=0)
        squares = np.vdot(users.T @ users, items.T @ items) / max(len(users) * len(items), 1)
        return math.sqrt(max(float(squares), 0.0))

    def __call__(self, users: Rows) -> Scores:
        return self._scores(self.users[users])

    def _scores(self, vectors: Scores) -> Scores:
        scores = dot_products(vectors, self.items)
        if self.bias is not None:
            scores += self.bias
        return scores

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Scores:
        known = own is not None and bool((own != NOBODY).all())
        if self.fold is None and known:
            assert own is not None
            return self(own)  # nothing follows from a history: a known user is what they were
        vectors = self.fold_in(histories, own)
        if own is not None and self.fold is not None:
            kept = np.flatnonzero(own != NOBODY)
            vectors[kept] += self.fold.own[own[kept]] * np.float32(self.fold.scale)
        if self.unit:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), SHORTEST)
        return self._scores(vectors)

    @cached_property
    def item_strengths(self) -> NDArray[np.float64]:
        """Of the items in the graph, tags included if they are nodes of it."""
        tag_weight = 0.0 if self.fold is None else self.fold.tag_weight
        return tags_as_users(self.train, tag_weight).item_strengths

    def fold_in(self, histories: csr_array, own: Rows | None = None) -> Scores:
        if self.fold is None:
            return super().fold_in(histories, own)
        weights = self.fold.weights.normalise(histories, self.item_strengths, own)
        vectors: Scores = weights @ self.fold.history
        return vectors

    @property
    def follows_history(self) -> bool:
        return self.fold is not None

    def similar_items(self, items: Rows) -> Scores:
        return cosines(self.items, items)

    def similar_users(self, users: Rows) -> Scores:
        return cosines(self.users, users)

    def vectors(self) -> Vectors:
        history = None if self.fold is None else self.fold.history
        return Vectors(self.users, self.items, history, self.bias)

    def products(self) -> Products:
        if self.bias is None:
            return Products(self.items, lambda rows: self.users[rows])
        # A bias is one more dimension, in which every user has 1.
        ones = np.ones((1, 1), np.float32)
        return Products(
            np.hstack([self.items, self.bias[:, None]]),
            lambda rows: np.hstack([self.users[rows], ones.repeat(len(rows), axis=0)]),
        )

    def explain(self, items: Rows, history: csr_array, user: int = NOBODY) -> Terms:
        bias = np.zeros(len(items)) if self.bias is None else self.bias[items].astype(np.float64)
        return self._terms(self.items[items].astype(np.float64), bias, history, user)

    def explain_mean(self, history: csr_array, user: int = NOBODY) -> Terms:
        bias = np.zeros(1) if self.bias is None else self.bias.mean(dtype=np.float64, keepdims=True)
        return self._terms(self._mean_item, bias, history, user)

    @cached_property
    def _mean_item(self) -> NDArray[np.float64]:
        return np.asarray(self.items.mean(axis=0, dtype=np.float64, keepdims=True))

    def _terms(
        self,
        targets: NDArray[np.float64],
        bias: NDArray[np.float64],
        history: csr_array,
        user: int,
    ) -> Terms:
        """Of the products with these vectors (k, dim), plus the bias (k,)."""
        if self.fold is None:
            return super().explain(
                np.empty(0, np.int32), history, user
            )  # raises the ConfigError that explains why
        known = np.array([user], dtype=np.int32)
        weights = self.fold.weights.normalise(history, self.item_strengths, known)
        shares = weights.data.astype(np.float64)[:, None]
        parts = shares * self.fold.history[weights.indices].astype(np.float64)
        own = np.zeros(targets.shape[1])
        if user != NOBODY:
            own = self.fold.scale * self.fold.own[user].astype(np.float64)
        if self.unit:
            targets = targets / max(float(np.linalg.norm(own + parts.sum(0))), SHORTEST)
        return Terms(targets @ own, parts @ targets.T, bias)

    def write(self, formula: Formula) -> str | None:
        if self.fold is None:
            return None
        history, strengths = self.fold.history, self.item_strengths
        degrees = np.where(strengths > 0, strengths, 1)[:, None]
        rows = formula.weighted(self.fold.weights, rooted=True)
        rows = formula.times(
            rows, history.shape, lambda: (history / np.sqrt(degrees)).astype(np.float32)
        )
        rows = formula.unit(rows) if self.unit else rows
        rows = formula.times(
            rows, self.items.T.shape, lambda: np.ascontiguousarray(self.items.T, np.float32)
        )
        return rows if self.bias is None else formula.plus(rows, self.bias)

    def parts(self) -> Parts:
        arrays, values = {"users": self.users, "items": self.items}, {"unit": self.unit}
        if self.bias is not None:
            arrays |= {"bias": self.bias}
        if self.fold is None:
            return Parts(self.kind, arrays, values)
        arrays |= {"own": self.fold.own, "history": self.fold.history}
        more = {"scale": self.fold.scale, "recency": self.fold.weights.recency}
        more["tag_weight"] = self.fold.tag_weight
        return Parts(self.kind, arrays, values | more)

    @classmethod
    def of_parts(cls, parts: Parts, train: Interactions) -> DotScorer:
        arrays, values = parts.arrays, parts.values
        fold = None
        if "history" in arrays:
            weights = HistoryWeights(values["recency"], train)
            tag_weight = values.get("tag_weight", 0.0)
            fold = FoldIn(arrays["own"], values["scale"], arrays["history"], weights, tag_weight)
        return cls(
            arrays["users"], arrays["items"], train, fold,
            unit=values["unit"], bias=arrays.get("bias"),
        )  # fmt: skip
