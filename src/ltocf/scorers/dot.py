"""Scores that are dot products of the final vectors, with new users folded in."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.item_tags import tags_as_users
from ltocf.scorers.scorer import NOBODY, Formula, Parts, Scorer, Scores, Terms, Vectors, cosines


class FoldIn(NamedTuple):
    """How a user's vector follows from a history: `scale` times their own row, plus a weighted sum
    of the history's rows."""

    own: Scores  # (n_users, dim)
    scale: float
    history: Scores  # (n_items, dim)
    weights: HistoryWeights
    tag_weight: float = 0.0  # of tags as further nodes of the graph


class DotScorer(Scorer):
    """`unit` says that a known user's vector is scaled to length 1, which changes no order."""

    kind = "dot products"

    def __init__(
        self,
        users: Scores,
        items: Scores,
        train: Interactions,
        fold: FoldIn | None = None,
        *,
        unit: bool = False,
    ) -> None:
        self.users, self.items, self.train, self.fold, self.unit = users, items, train, fold, unit

    def __call__(self, users: Rows) -> Scores:
        scores: Scores = self.users[users] @ self.items.T
        return scores

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Scores:
        known = own is not None and bool((own != NOBODY).all())
        if self.fold is None and known:
            assert own is not None
            return self(own)  # nothing follows from a history: a known user is what they were
        vectors = self.fold_in(histories, own)
        if own is not None and self.fold is not None:
            kept = np.flatnonzero(own != NOBODY)
            joined = vectors[kept] + self.fold.own[own[kept]] * np.float32(self.fold.scale)
            if self.unit:
                joined /= np.maximum(np.linalg.norm(joined, axis=1, keepdims=True), 1e-12)
            vectors[kept] = joined
        scores: Scores = vectors @ self.items.T
        return scores

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
    def knows_untouched(self) -> bool:
        return self.fold is not None and self.fold.tag_weight > 0

    @property
    def follows_history(self) -> bool:
        return self.fold is not None

    def similar_items(self, items: Rows) -> Scores:
        return cosines(self.items, items)

    def similar_users(self, users: Rows) -> Scores:
        return cosines(self.users, users)

    def vectors(self) -> Vectors:
        return Vectors(self.users, self.items, None if self.fold is None else self.fold.history)

    def explain(self, items: Rows, history: csr_array, user: int = NOBODY) -> Terms:
        return self._terms(self.items[items].astype(np.float64), history, user)

    def explain_mean(self, history: csr_array, user: int = NOBODY) -> Terms:
        return self._terms(self._mean_item, history, user)

    @cached_property
    def _mean_item(self) -> NDArray[np.float64]:
        return np.asarray(self.items.mean(axis=0, dtype=np.float64, keepdims=True))

    def _terms(self, targets: NDArray[np.float64], history: csr_array, user: int) -> Terms:
        """Of the products with these vectors. (k, dim)"""
        if self.fold is None:
            return super().explain(np.empty(0, np.int32), history, user)  # which says why not
        known = np.array([user], dtype=np.int32)
        weights = self.fold.weights.normalise(history, self.item_strengths, known)
        shares = weights.data.astype(np.float64)[:, None]
        parts = shares * self.fold.history[weights.indices].astype(np.float64)
        own = np.zeros(targets.shape[1])
        if user != NOBODY:
            own = self.fold.scale * self.fold.own[user].astype(np.float64)
            if self.unit:
                targets = targets / np.linalg.norm(own + parts.sum(0))
        return Terms(targets @ own, parts @ targets.T)

    def write(self, formula: Formula) -> str | None:
        if self.fold is None:
            return None
        history, strengths = self.fold.history, self.item_strengths
        degrees = np.where(strengths > 0, strengths, 1)[:, None]
        rows = formula.weighted(self.fold.weights, rooted=True)
        rows = formula.times(
            rows, history.shape, lambda: (history / np.sqrt(degrees)).astype(np.float32)
        )
        return formula.times(
            rows, self.items.T.shape, lambda: np.ascontiguousarray(self.items.T, np.float32)
        )

    def parts(self) -> Parts:
        arrays, values = {"users": self.users, "items": self.items}, {"unit": self.unit}
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
        return cls(arrays["users"], arrays["items"], train, fold, unit=values["unit"])
