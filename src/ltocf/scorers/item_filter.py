"""GF-CF, BSPM and ChebyCF when asked: a filter of the item graph plus a part of low rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Interactions, Rows
from ltocf.ranking.sums import FEW_VECTORS, best_sums, dot_products, row_lengths
from ltocf.scorers.of_histories import LinearScorer, rows_times
from ltocf.scorers.scorer import Scores

if TYPE_CHECKING:
    from ltocf.graph.neighbours import Neighbours

FEW = 8  # columns that SciPy filters no slower than the kernels, which take whole registers
LINEAR = 3  # coefficients on A of a polynomial of first degree in P
REACHED = 0.5  # of all pairs, for each row, beyond which rows are not filtered one by one
COLUMNS = 64  # of one run of the recurrence: its tables stay cached

Signals = NDArray[np.float32] | csr_array  # (n_items, any)


class ItemFilterScorer(LinearScorer):
    """Scores of a row r are `(r * before) p(P) * after + r left right^T`.

    P = N^T N is never formed: p(P) is a Chebyshev filter of the graph, and left and right are
    (n_items, rank); before and after are (n_items,). `coefficients` are those of p(x^2) as a
    Chebyshev series on A. Memory: those two, and the scores of the rows asked for, twice.
    """

    kind = "item filter"

    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        weights: HistoryWeights,
        train: Interactions,
        graph: Neighbours | None = None,
        **values: Any,
    ) -> None:
        super().__init__(arrays, weights, train, **values)
        self._graph = graph

    @property
    def graph(self) -> Neighbours:
        """What the compiled kernels read, made when many are scored at once."""
        if self._graph is None:
            from ltocf.graph.neighbours import Neighbours

            self._graph = Neighbours(self.fitted_to)
        return self._graph

    @cached_property
    def normalised(self) -> csr_array:
        """N, the users' rows of A and the items' columns: s_ui / sqrt(sum of u's * sum of i's), s
        being 1 where interactions have no strengths. (n_users, n_items)"""
        train = self.fitted_to
        users, items = self._roots
        values = users[train.users] * items[train.items]
        if train.strengths is not None:
            values *= train.strengths
        arrays = (values.astype(np.float32), train.items, train.indptr)
        return csr_array(arrays, shape=(train.n_users, train.n_items))

    @cached_property
    def _roots(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What normalises users and items."""
        train = self.fitted_to
        users, items = (
            1 / np.sqrt(np.where(sums > 0, sums, 1))
            for sums in (train.user_strengths, train.item_strengths)
        )
        return users, items

    @cached_property
    def _scales(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        users, items = self._roots
        return users.astype(np.float32), items.astype(np.float32)

    @cached_property
    def _before_is_one(self) -> bool:
        return bool((self.arrays["before"] == 1).all())

    @cached_property
    def pairs(self) -> csr_array:
        """Ones where N is not 0."""
        train = self.fitted_to
        arrays = np.ones(len(train), np.float32), train.items, train.indptr
        return csr_array(arrays, shape=(train.n_users, train.n_items))

    @cached_property
    def normalised_transpose(self) -> csr_array:
        return csr_array(self.normalised.T)

    def score_histories(self, histories: csr_array) -> Scores:
        scores = self._polynomial(histories)
        scores += dot_products(self._weights(histories), self.arrays["right"])
        return scores

    def best_of_histories(self, histories: csr_array, most: Sequence[int]) -> Scores:
        """The polynomial alone finds nearly all of a list, and what the low rank can add to an item
        is at most the product of two lengths: most of `right` need not be read."""
        if histories.shape[0] > FEW_VECTORS:  # which read it once
            return self.score_histories(histories)
        table, weights = self.arrays["right"], self._weights(histories)
        return best_sums(self._polynomial(histories), weights, table, self.lengths, most)

    def _polynomial(self, histories: csr_array) -> Scores:
        """(r * before) p(P) * after."""
        scaled = histories.astype(np.float32, copy=False)
        if not self._before_is_one:
            scaled = csr_array(scaled * self.arrays["before"])
        scores = self._by_neighbours(scaled)
        if scores is None:
            scores = np.ascontiguousarray(self.filter(csr_array(scaled.T)).T)
        scores *= self.arrays["after"]
        return scores

    def _weights(self, histories: csr_array) -> Scores:
        """r left. (rows, rank)"""
        weights: Scores = (histories @ self.arrays["left"]).astype(np.float32)
        return weights

    @cached_property
    def lengths(self) -> Scores:
        """Of the rows of `right`. (n_items,)"""
        return row_lengths(self.arrays["right"])

    def _by_neighbours(self, signals: csr_array) -> Scores | None:
        """p(P) of rows of items, if p is linear, from the users who have these items and what else
        they have. None where that is too much: then to go through all pairs is faster."""
        if len(self.arrays["coefficients"]) != LINEAR:
            return None
        reached = csr_array(signals @ self.normalised_transpose)
        pairs = int(self.fitted_to.user_degrees[reached.indices].sum())
        if pairs > REACHED * len(self.fitted_to) * signals.shape[0]:
            return None
        constant, _, slope = self.arrays["coefficients"].tolist()  # of T_1(2 P - 1) = 2 P - 1
        if self.fitted_to.strengths is None:  # N is ones between two diagonals
            users, items = self._scales
            reached.data *= users[reached.indices]
            scores = rows_times(reached, self.pairs, ones=True)
            scores *= items
            scores *= np.float32(2 * slope)
        else:
            scores = rows_times(reached, self.normalised)
            scores *= np.float32(2 * slope)
        owners = np.repeat(np.arange(signals.shape[0]), np.diff(signals.indptr))
        scores[owners, signals.indices] += np.float32(constant - slope) * signals.data
        return scores

    def entries(self, rows: Rows, columns: Rows) -> NDArray[np.floating[Any]]:
        """p(P) is symmetric: a column of it is what it makes of one item."""
        found = np.empty((len(rows), len(columns)), np.float32)
        for start in range(0, len(columns), COLUMNS):
            some = slice(start, start + COLUMNS)
            found[:, some] = self._entries(rows, columns[some])
        found *= self.arrays["before"][rows][:, None] * self.arrays["after"][columns]
        low: NDArray[np.float32] = self.arrays["left"][rows] @ self.arrays["right"][columns].T
        return found + low

    def _entries(self, rows: Rows, columns: Rows) -> NDArray[np.float32]:
        """Of p(P)."""
        if len(self.arrays["coefficients"]) != LINEAR:
            alone = (np.ones(len(columns), np.float32), (columns, np.arange(len(columns))))
            return self.filter(csr_array(alone, shape=(self.train.n_items, len(columns))), rows)
        constant, _, slope = self.arrays["coefficients"].tolist()
        having = self.normalised_transpose  # by whom each item is touched
        alike: NDArray[np.float32] = (having[rows] @ having[columns].T).toarray()
        alike *= np.float32(2 * slope)
        alike += np.float32(constant - slope) * (rows[:, None] == columns)
        return alike

    def row_sums(self, rows: Rows) -> NDArray[np.floating[Any]]:
        whole, low = self._sums
        return self.arrays["before"][rows] * whole[rows] + self.arrays["left"][rows] @ low

    @cached_property
    def _sums(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """p(P) after, and the sum of the rows of right."""
        after = self.arrays["after"].astype(np.float32)[:, None]
        return self.filter(after)[:, 0], self.arrays["right"].sum(axis=0)

    def filter(self, signals: Signals, rows: Rows | None = None) -> NDArray[np.float32]:
        """p(P) of signals on items, or these rows of it alone. (n_items or len(rows), any)"""
        if signals.shape[1] > FEW and rows is None and self.fitted_to.strengths is None:
            return self._by_kernels(signals)
        return self._by_products(signals, rows)

    def _by_kernels(self, signals: Signals) -> NDArray[np.float32]:
        """Memory beyond the result: four tables of (n_users + n_items, 64)."""
        out = np.empty(signals.shape, np.float32)
        for start in range(0, signals.shape[1], COLUMNS):
            some = slice(start, start + COLUMNS)
            part = _dense(signals[:, some])
            E = np.zeros((self.graph.n_nodes, part.shape[1]), np.float32)
            E[self.fitted_to.n_users :] = part
            filtered = self.graph.chebyshev_sum(E, self.arrays["coefficients"].tolist())[0]
            out[:, some] = filtered[self.fitted_to.n_users :]
        return out

    def _by_products(self, signals: Signals, rows: Rows | None) -> NDArray[np.float32]:
        """Of the even Chebyshev polynomials alone: T_2m(x) = T_m(2 x^2 - 1), so with
        Q = 2 P - 1 it is the recurrence T_{m+1}(Q) X = 2 Q T_m(Q) X - T_{m-1}(Q) X.

        The last product is made for the rows that are wanted alone. Signals on few items stay
        sparse as long as that is cheaper: people have few of the items.
        """
        first, *others = self.arrays["coefficients"][::2].tolist()
        wanted = slice(None) if rows is None else rows
        out = np.float32(first) * _dense(signals[wanted])
        previous: Signals = signals
        current: Signals = signals
        for m, coefficient in enumerate(others, 1):
            last = m == len(others)
            some = wanted if last else slice(None)
            spread = self.normalised @ current
            back = self.normalised_transpose
            gathered = _dense((back if rows is None or not last else back[rows]) @ spread)
            here, before = _dense(current[some]), _dense(previous[some])
            following = 2 * gathered - here if m == 1 else 4 * gathered - 2 * here - before
            out += np.float32(coefficient) * (following if last else following[wanted])
            previous, current = current, following
        return out


def _dense(table: Any) -> NDArray[np.float32]:
    dense: NDArray[np.float32] = table.toarray() if isinstance(table, csr_array) else table
    return dense
