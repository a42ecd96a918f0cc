"""What scorers have in common to which a user is what they have: a known user and a new one are
scored alike."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.item_tags import tags_as_users
from ltocf.scorers.scorer import NOBODY, Formula, Parts, Scorer, Scores, Terms

SOME_ROWS = 1024  # of M that are made at a time
FEW = 8  # rows that are treated one by one, before what serves many is loaded or made
KERNELS = "ltocf.graph.kernels.sparse"
Kind = TypeVar("Kind", bound="HistoryScorer")


class HistoryScorer(Scorer):
    """`arrays` and `values` are all that a fitted closed form is beside its training data."""

    kind: ClassVar[str]

    def __init__(
        self, arrays: dict[str, NDArray[Any]], weights: HistoryWeights, train: Interactions,
        **values: Any,
    ) -> None:  # fmt: skip
        self.arrays, self.weights, self.train, self.values = arrays, weights, train, values

    @abstractmethod
    def score_histories(self, histories: csr_array) -> Scores:
        """Scores of all items for weighted rows of items. (rows, n_items)"""

    def best_of_histories(self, histories: csr_array, most: Sequence[int]) -> Scores:
        """The same, in which a score that is not among so many best ones of its row may be -inf."""
        return self.score_histories(histories)

    @cached_property
    def fitted_to(self) -> Interactions:
        """What the model was fitted to: the training data, and tags beside the users if it took
        them for such."""
        return tags_as_users(self.train, self.values.get("tag_weight", 0.0))

    @cached_property
    def known(self) -> csr_array:
        """The weighted histories of all known users."""
        return self.weights.of(self.train)

    def known_histories(self, users: Rows) -> csr_array:
        """The weighted histories of these users; of a few without weighing those of all."""
        return self.weights.of(self.train, users) if len(users) <= FEW else self.known[users]

    def __call__(self, users: Rows) -> Scores:
        return self.score_histories(self.known_histories(users))

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Scores:
        return self.score_histories(self.weights.weigh(histories, own))

    def best_scores(self, users: Rows, most: Sequence[int]) -> Scores:
        return self.best_of_histories(self.known_histories(users), most)

    def best_from_history(
        self, histories: csr_array, own: Rows | None, most: Sequence[int]
    ) -> Scores:
        return self.best_of_histories(self.weights.weigh(histories, own), most)

    def with_recency(self: Kind, recency: float) -> Kind:
        other = copy(self)
        other.weights = replace(self.weights, recency=recency)
        other.__dict__.pop("known", None)
        return other

    def similar_items(self, items: Rows) -> Scores:
        """The scores that somebody gives who has that item alone."""
        ones = np.ones(len(items), dtype=np.float32)
        alone = (ones, items, np.arange(len(items) + 1))
        return self.from_history(csr_array(alone, shape=(len(items), self.train.n_items)))

    def similar_users(self, users: Rows) -> Scores:
        """The cosines of their 0/1 histories."""
        train = self.train
        values = (1 / np.sqrt(np.maximum(train.user_degrees, 1)))[train.users].astype(np.float32)
        unit = csr_array((values, train.items, train.indptr), shape=(train.n_users, train.n_items))
        alike: Scores = (unit[users] @ unit.T).toarray()
        return alike

    def parts(self) -> Parts:
        weights = {"recency": self.weights.recency, "memory": self.weights.memory}
        return Parts(self.kind, self.arrays, self.values | weights)

    @classmethod
    def of_parts(cls: type[Kind], parts: Parts, train: Interactions) -> Kind:
        values = dict(parts.values)
        weights = HistoryWeights(values.pop("recency"), train, values.pop("memory"))
        return cls(parts.arrays, weights, train, **values)


class LinearScorer(HistoryScorer):
    """Scores are `r M`, M an items x items matrix that need not be there as a whole."""

    @abstractmethod
    def entries(self, rows: Rows, columns: Rows) -> NDArray[np.floating[Any]]:
        """A part of M. (len(rows), len(columns))"""

    @abstractmethod
    def row_sums(self, rows: Rows) -> NDArray[np.floating[Any]]:
        """Of these rows of M, over all columns. (len(rows),)"""

    def explain(self, items: Rows, history: csr_array, user: int = NOBODY) -> Terms:
        weighted = self.weights.weigh(history, np.array([user], dtype=np.int32))
        found = self.entries(weighted.indices, items).astype(np.float64)
        return Terms.of(found * weighted.data.astype(np.float64)[:, None])

    def explain_mean(self, history: csr_array, user: int = NOBODY) -> Terms:
        weighted = self.weights.weigh(history, np.array([user], dtype=np.int32))
        means = self.row_sums(weighted.indices).astype(np.float64) / self.train.n_items
        return Terms.of((means * weighted.data)[:, None])

    def write(self, formula: Formula) -> str | None:
        size = self.train.n_items
        return formula.times(formula.weighted(self.weights), (size, size), self._whole)

    def _whole(self) -> Scores:
        """M. Memory: n_items^2."""
        size = self.train.n_items
        whole, alone = np.empty((size, size), np.float32), csr_array(eye_array(size, format="csr"))
        for start in range(0, size, SOME_ROWS):
            some = slice(start, start + SOME_ROWS)
            whole[some] = self.score_histories(alone[some])
        return whole


def rows_times(rows: csr_array, matrix: csr_array | Scores, *, ones: bool = False) -> Scores:
    """rows @ matrix, dense, on all threads if there are many rows; `ones` says that the matrix has
    no other entries. Either way sums are taken in the same order, so that one list is that of many
    to the last bit. (rows, columns)

    SciPy lets no other thread run and takes longer, but compiled code takes long to load.
    """
    if rows.shape[0] > FEW or KERNELS in sys.modules:
        from ltocf.graph.kernels.sparse import times

        return times(rows, matrix, ones=ones)
    product = rows.astype(np.float32) @ matrix
    return np.ascontiguousarray(product.toarray() if isinstance(product, csr_array) else product)
