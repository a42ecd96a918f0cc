"""Histories, and how much each item of one counts.

A history is a row whose entries are 1 / (1 + how many came later), or ones where nobody knows the
order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError


def histories_of(train: Interactions, *, ordered: bool = True) -> csr_array:
    """The history of every user, in order if that is wanted and known. (n_users, n_items)"""
    entries = np.ones(len(train), dtype=np.float32)
    if ordered and train.timestamps is not None:
        entries /= 1 + train.later_counts
    return csr_array((entries, train.items, train.indptr), shape=(train.n_users, train.n_items))


@dataclass(frozen=True)
class HistoryWeights:
    """What a model makes of a history before it looks at it: an item's entry to the power
    `recency`. With 0 all items count alike; with more, those that came last count most."""

    recency: float = 0.0

    def check(self, train: Interactions) -> None:
        if self.recency and train.timestamps is None:
            raise ConfigError(
                f"recency = {self.recency!r} needs the time of each interaction, which these data "
                "do not have; name the time column (for a folder of train.txt: 'ltocf prepare "
                "--ordered') or leave recency out"
            )

    def of(self, train: Interactions) -> csr_array:
        """The weighted history of every user. (n_users, n_items)"""
        self.check(train)
        return self.weigh(histories_of(train, ordered=self.recency > 0))

    def weigh(self, histories: csr_array) -> csr_array:
        """Entries to the power `recency`, each row then scaled to a mean of 1."""
        if not self.recency:
            return _with_values(histories, np.ones(histories.nnz))
        counts = np.diff(histories.indptr)
        weights = histories.data.astype(np.float64) ** self.recency
        rows = np.repeat(np.arange(len(counts)), counts)
        sums = np.bincount(rows, weights, minlength=len(counts))
        return _with_values(histories, weights * (counts / np.maximum(sums, 1e-300))[rows])

    def normalise(self, histories: csr_array, item_degrees: NDArray[np.int64]) -> csr_array:
        """The rows that users with these histories would have in the normalised adjacency."""
        weighted = self.weigh(histories)
        counts = np.diff(weighted.indptr)
        degrees = np.maximum(item_degrees[weighted.indices], 1)
        return _with_values(weighted, weighted.data / np.sqrt(np.repeat(counts, counts) * degrees))


def _with_values(rows: csr_array, values: NDArray[np.floating]) -> csr_array:
    return csr_array((values.astype(np.float32), rows.indices, rows.indptr), shape=rows.shape)
