"""Histories, and how much each item of one counts.

A history is a row whose entries are 1 / (1 + how many came later), or ones where nobody knows the
order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions, Rows
from ltocf.data.pairs.columns import pair_keys
from ltocf.errors import ConfigError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def histories_of(
    train: Interactions, users: Rows | None = None, *, ordered: bool = True
) -> csr_array:
    """The histories of these users, by default of all, in order if that is wanted and known.
    (users, n_items)"""
    from scipy.sparse import csr_array

    places: slice | NDArray[np.int64]
    places, indptr = slice(None), train.indptr
    if users is not None:
        counts = train.indptr[users + 1] - train.indptr[users]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        places = np.repeat(train.indptr[users] - indptr[:-1], counts) + np.arange(indptr[-1])
    items = train.items[places]
    entries = np.ones(len(items), dtype=np.float32)
    if ordered and train.timestamps is not None:
        # Ranks, not the times themselves: they mean the same for people who come daily and for
        # people who come once a year.
        entries /= 1 + train.later_counts[places]
    return csr_array((entries, items, indptr), shape=(len(indptr) - 1, train.n_items))


def interaction_matrix(train: Interactions) -> csr_array:
    """R, with ones, or strengths scaled to a mean square of 1, so that a penalty means the same for
    both. (n_users, n_items)"""
    from scipy.sparse import csr_array

    values = np.ones(len(train), dtype=np.float32)
    if train.strengths is not None:
        # A penalty is tuned for entries of 1; with larger ones it would regularise less.
        values = train.strengths / np.sqrt(np.square(train.strengths).mean(dtype=np.float64))
    arrays = (values.astype(np.float32), train.items, train.indptr)
    return csr_array(arrays, shape=(train.n_users, train.n_items))


def sparse_matrix(
    values: NDArray[np.float32], indices: Rows, indptr: NDArray[Any], shape: tuple[int, int]
) -> csr_array:
    """The matrix of these arrays, without copying a large one: SciPy would convert the indices to
    the type of `indptr`."""
    from scipy.sparse import csr_array

    narrow = indptr[-1] <= np.iinfo(np.int32).max
    return csr_array((values, indices, indptr.astype(np.int32) if narrow else indptr), shape=shape)


@dataclass(frozen=True, eq=False)
class HistoryWeights:
    """The weights of a history's items, applied before a model uses it: by recency and by strength.

    An item counts by its entry to the power `recency`. With 0 all items count alike; with a larger
    one, the latest count most. With a `memory` it counts exp(-age / memory) times that, age being
    how many came later, if `train` has times. Where `train` has weights, a known user's item counts
    by its strength too, and what they touched since, and all that a new user has, by the strength
    1.
    """

    recency: float = 0.0
    train: Interactions | None = None
    memory: float | None = None

    @property
    def fades(self) -> bool:
        """Whether the order of a history matters."""
        times = self.train is not None and self.train.timestamps is not None
        return self.recency > 0 or (self.memory is not None and times)

    def check(self, train: Interactions) -> None:
        if self.recency and train.timestamps is None:
            raise ConfigError(
                f"recency = {self.recency!r} needs the time of each interaction, which these data "
                "do not have; name the time column (for a folder of train.txt: 'ltocf prepare "
                "--ordered') or leave recency out"
            )

    def of(self, train: Interactions, users: Rows | None = None) -> csr_array:
        """The weighted histories of these users, by default of all. (users, n_items)"""
        self.check(train)
        own = np.arange(train.n_users, dtype=np.int32) if users is None else users
        return self.weigh(histories_of(train, users, ordered=self.fades), own)

    def weigh(self, histories: csr_array, own: Rows | None = None) -> csr_array:
        """Recency times strength, each scaled to a mean of 1 in every row.

        `own` are the users' rows in the training data, NOBODY (-1) for a person without one.
        """
        return _with_values(histories, self._recency(histories) * self._strengths(histories, own))

    def normalise(
        self, histories: csr_array, item_strengths: NDArray[np.float64], own: Rows | None = None
    ) -> csr_array:
        """The rows that users with these histories would have in the normalised adjacency."""
        strengths = self._raw_strengths(histories, own)
        values = self._recency(histories) * strengths
        rows = _rows_of_entries(histories)
        # The sum is of strengths alone: recency shifts weight within a history, and must not change
        # its sum.
        sums = np.bincount(rows, strengths, minlength=histories.shape[0])
        # An item that nobody had in training has the strength 0; avoid a division by it.
        items = item_strengths[histories.indices]
        return _with_values(histories, values / np.sqrt(sums[rows] * np.where(items > 0, items, 1)))

    def _recency(self, histories: csr_array) -> NDArray[np.float64]:
        if not self.fades:
            return np.ones(histories.nnz)
        entries = histories.data.astype(np.float64)
        values = entries**self.recency
        if self.memory is not None:
            values *= np.exp((1 - 1 / entries) / self.memory)
        return _scaled(histories, values)

    def _strengths(self, histories: csr_array, own: Rows | None) -> NDArray[np.float64]:
        strengths = self._raw_strengths(histories, own)
        weighted = self.train is not None and self.train.weights is not None
        return _scaled(histories, strengths) if weighted else strengths

    def _raw_strengths(self, histories: csr_array, own: Rows | None) -> NDArray[np.float64]:
        train, found = self.train, np.ones(histories.nnz)
        if train is None or train.strengths is None or own is None:
            return found
        users = np.repeat(own, np.diff(histories.indptr))
        wanted, there = pair_keys(users, histories.indices, train.n_items), train.keys
        # Keys are sorted, since pairs are. A key that belongs after the last one is not there.
        places = np.minimum(np.searchsorted(there, wanted), max(len(there) - 1, 0))
        known = (users >= 0) & (there[places] == wanted)
        found[known] = train.strengths[places[known]]
        return found


def _rows_of_entries(histories: csr_array) -> NDArray[np.int64]:
    return np.repeat(np.arange(histories.shape[0]), np.diff(histories.indptr))


def _scaled(histories: csr_array, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values with a mean of 1 in every row."""
    rows, counts = _rows_of_entries(histories), np.diff(histories.indptr)
    sums = np.bincount(rows, values, minlength=len(counts))
    # Powers of many old items can underflow to a sum of 0.
    scaled: NDArray[np.float64] = values * (counts / np.maximum(sums, 1e-300))[rows]
    return scaled


def _with_values(rows: csr_array, values: NDArray[np.floating]) -> csr_array:
    from scipy.sparse import csr_array

    return csr_array((values.astype(np.float32), rows.indices, rows.indptr), shape=rows.shape)
