"""Attributes when asked: items by what they are."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array

from ltocf.data.interactions import Interactions, Rows
from ltocf.scorers.of_histories import LinearScorer
from ltocf.scorers.scorer import Scores


class AttributesScorer(LinearScorer):
    """Scores are `r (V + shared Z) Z^T diag(lift)`, Z being the items' tags and V, `wanted`, how
    much somebody with an item wants each of the tags `learned`."""

    kind = "attributes"

    @cached_property
    def Z(self) -> csr_array:
        return tag_vectors(self.train)

    @property
    def knows_untouched(self) -> bool:
        return True

    def grown(self, train: Interactions, n_known: int) -> AttributesScorer:
        """Nobody with a new item wants anything by that yet, and nothing lifts it."""
        lift = np.ones(train.n_items, np.float32)
        lift[:n_known] = self.arrays["lift"]
        weights = replace(self.weights, train=train)
        return AttributesScorer(self.arrays | {"lift": lift}, weights, train, **self.values)

    def score_histories(self, histories: csr_array) -> Scores:
        return self._scores_of(histories.astype(np.float32), self.Z, self.arrays["lift"])

    def _scores_of(self, rows: csr_array, tags: csr_array, lift: Scores) -> Scores:
        wishes = (self.values["shared"] * (rows @ self.Z)).toarray().astype(np.float32)
        wanted = self.arrays["wanted"]
        wishes[:, self.arrays["learned"]] += rows[:, : len(wanted)] @ wanted
        scores: Scores = np.ascontiguousarray((tags @ wishes.T).T)
        scores *= lift
        return scores

    def entries(self, rows: Rows, columns: Rows) -> NDArray[np.floating[Any]]:
        alone = (np.ones(len(rows), np.float32), rows, np.arange(len(rows) + 1))
        singles = csr_array(alone, shape=(len(rows), self.train.n_items))
        return self._scores_of(singles, self.Z[columns], self.arrays["lift"][columns])

    def row_sums(self, rows: Rows) -> NDArray[np.floating[Any]]:
        total = self.Z.T @ self.arrays["lift"]
        wanted = self.arrays["wanted"]
        learned = np.where(
            rows < len(wanted),
            wanted[np.minimum(rows, len(wanted) - 1)] @ total[self.arrays["learned"]],
            0,
        )
        return np.asarray(self.values["shared"] * (self.Z[rows] @ total) + learned)


def tag_vectors(train: Interactions) -> csr_array:
    """The tags of each item, rare ones counting more, as rows of length 1. (n_items, n_tags)

    How rare a tag is, the items say that somebody has touched.
    """
    if train.item_tags is None:
        return csr_array(eye_array(train.n_items, dtype=np.float32))
    tags, touched = csr_array(train.item_tags.astype(np.float32)), train.item_degrees > 0
    counts = np.bincount(tags[touched].indices, minlength=tags.shape[1])
    # A tag that every item has tells nothing, but may be all that there is.
    rarity = np.log((1 + np.count_nonzero(touched)) / np.maximum(counts, 1))
    weighed = csr_array(tags @ diags_array(rarity))
    lengths = np.sqrt(np.asarray(weighed.power(2).sum(axis=1)).ravel())
    unit = diags_array(1 / np.where(lengths > 0, lengths, 1)) @ weighed
    return csr_array(unit.astype(np.float32))
