"""Weights from item to item when asked: sparse ones (item kNN, RP3beta, sparse EASE), EASE's, and
Turbo-CF's similarities, which are raised to a power."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array

from ltocf.data.histories import interaction_matrix, sparse_matrix
from ltocf.data.interactions import Rows
from ltocf.machine.threads import share_out
from ltocf.scorers.of_histories import FEW, LinearScorer, rows_times
from ltocf.scorers.scorer import Scores

ROWS = 256  # of a matrix of items by items, as much of it as is ever made
SOME_VALUES = 1 << 20  # raised by a thread at a time


class ItemItemScorer(LinearScorer):
    """Scores are r W; arrays `values`, `indices` and `indptr` of W by rows."""

    kind = "item-item weights"

    @cached_property
    def matrix(self) -> csr_array:
        values, indices, indptr = (self.arrays[of] for of in ("values", "indices", "indptr"))
        return sparse_matrix(values, indices, indptr, (self.train.n_items, self.train.n_items))

    def score_histories(self, histories: csr_array) -> Scores:
        return rows_times(histories, self.matrix)

    def entries(self, rows: Rows, columns: Rows) -> NDArray[np.floating[Any]]:
        found: NDArray[np.float32] = self.matrix[rows][:, columns].toarray()
        return found

    def row_sums(self, rows: Rows) -> NDArray[np.floating[Any]]:
        return np.asarray(self.matrix[rows].sum(axis=1), np.float64).ravel()


class EASEScorer(LinearScorer):
    """Scores are `r W`, `W = (diag(P) - diag(items) P diag(1 / items)) diag(factors)`.

    `inverse` is P, or where users are fewer K^-1, of `K = S S^T + I` with
    `S = diag(user_roots) R diag(roots)`: then `P = diag(roots) (I - S^T K^-1 S) diag(roots)`.
    `diagonal` is that of P; `items`, `roots` and `factors` are of items, `user_roots` of users.
    """

    kind = "ease"

    @cached_property
    def by_users(self) -> bool:
        return len(self.arrays["inverse"]) != self.train.n_items

    @cached_property
    def S(self) -> csr_array:
        users, items = (diags_array(self.arrays[name]) for name in ("user_roots", "roots"))
        return csr_array(users @ interaction_matrix(self.fitted_to) @ items)

    @cached_property
    def users_of(self) -> csr_array:
        """S transposed, by items."""
        return csr_array(self.S.T)

    def __call__(self, users: Rows) -> Scores:
        # S - S S^T K^-1 S is K^-1 S: a row of K^-1 stands for a row of S, which is the history
        # only if that is of ones.
        plain = not self.weights.recency and self.fitted_to.weights is None
        if not (self.by_users and plain and bool((self.arrays["items"] == 1).all())):
            return super().__call__(users)
        rows = self.arrays["inverse"][users] / self.arrays["user_roots"][users][:, None]
        left: Scores = (rows @ self.S) * self.arrays["roots"]
        return self._finish(self.known_histories(users), left)

    def score_histories(self, histories: csr_array) -> Scores:
        """Exact for anybody. Where users are fewer it costs a product with K^-1 for each row."""
        rows = histories.astype(np.float32)
        scaled = csr_array(rows * self.arrays["items"])
        if not self.by_users:
            return self._finish(rows, rows_times(scaled, self.arrays["inverse"]))
        scaled = csr_array(scaled * self.arrays["roots"])
        alike = (scaled @ self.S.T).toarray()
        explained: Scores = (alike @ self.arrays["inverse"]) @ self.S
        return self._finish(rows, (scaled.toarray() - explained) * self.arrays["roots"])

    def _finish(self, rows: csr_array, times_inverse: Scores) -> Scores:
        """r W from `r diag(items) P`, which is overwritten."""
        times_inverse /= -self.arrays["items"]
        at = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices
        times_inverse[at] += rows.data * self.arrays["diagonal"][rows.indices]
        times_inverse *= self.arrays["factors"]
        return times_inverse

    def entries(self, rows: Rows, columns: Rows) -> NDArray[np.floating[Any]]:
        same = rows[:, None] == columns
        items, factors = self.arrays["items"].astype(np.float64), self.arrays["factors"]
        if self.by_users:
            answers = self.arrays["inverse"] @ self.users_of[columns].toarray().T
            roots = self.arrays["roots"].astype(np.float64)
            P = roots[rows][:, None] * (same - self.users_of[rows] @ answers) * roots[columns]
        else:
            P = self.arrays["inverse"][np.ix_(rows, columns)].astype(np.float64)
        found = same * self.arrays["diagonal"][columns] - items[rows][:, None] * P / items[columns]
        return np.asarray(found * factors[columns])

    def row_sums(self, rows: Rows) -> NDArray[np.floating[Any]]:
        ratios = self.arrays["factors"].astype(np.float64) / self.arrays["items"]
        if self.by_users:
            roots = self.arrays["roots"].astype(np.float64)
            scaled = ratios * roots
            explained = self.users_of[rows] @ (self.arrays["inverse"] @ (self.S @ scaled))
            times_ratios = roots[rows] * (scaled[rows] - explained)
        else:
            times_ratios = self.arrays["inverse"][rows] @ ratios
        kept = self.arrays["diagonal"][rows] * self.arrays["factors"][rows]
        return np.asarray(kept - self.arrays["items"][rows] * times_ratios)


class PoweredScorer(LinearScorer):
    """Scores are r Q, or with `second` r (2Q - Q^2). The arrays hold Q by rows, or R_a: then
    Q = (R_a^T R_a)^power by element, of which some rows are made at a time."""

    kind = "powered similarities"

    @cached_property
    def matrix(self) -> csr_array:
        values, indices, indptr = (self.arrays[of] for of in ("values", "indices", "indptr"))
        return sparse_matrix(values, indices, indptr, (len(indptr) - 1, self.train.n_items))

    @cached_property
    def columns(self) -> csc_array:
        return csc_array(self.matrix)

    def score_histories(self, histories: csr_array) -> Scores:
        once = self._times_q(histories.astype(np.float32))
        return 2 * once - self._times_q(once) if self.values["second"] else once

    def _times_q(self, rows: csr_array | Scores) -> Scores:
        if self.values["keeps_q"] and isinstance(rows, csr_array):
            return rows_times(rows, self.matrix)
        if self.values["keeps_q"] or self.values["power"] == 1:
            product = rows @ self.matrix if self.values["keeps_q"] else self._factored(rows)
            return np.ascontiguousarray(
                product if isinstance(product, np.ndarray) else product.toarray()
            )
        total = np.zeros(rows.shape, dtype=np.float32)
        sparse = csc_array(rows)
        present = np.flatnonzero(np.diff(sparse.indptr))
        for start in range(0, len(present), ROWS):
            items = present[start : start + ROWS].astype(np.int32)
            total += (sparse[:, items] @ self._q_rows(items)).toarray()
        return total

    def _factored(self, rows: csr_array | Scores) -> Any:
        return (rows @ self.matrix.T) @ self.matrix

    def _q_rows(self, items: Rows, columns: Rows | None = None) -> csr_array:
        """These rows of Q, or of some of its columns."""
        if self.values["keeps_q"]:
            rows = self.matrix[items]
            return rows if columns is None else rows[:, columns]
        others = self.matrix if columns is None else csr_array(self.columns[:, columns])
        return power_of_product(
            csr_array(self.columns[:, items].T), others, float(self.values["power"])
        )

    def entries(self, rows: Rows, columns: Rows) -> NDArray[np.floating[Any]]:
        once: Scores = self._q_rows(rows, columns).toarray()
        if not self.values["second"]:
            return once
        if self.values["keeps_q"]:  # of which some weights may have been left out
            second: Scores = (self.matrix[rows] @ self.columns[:, columns]).toarray()
            return 2 * once - second
        whole = np.zeros((len(columns), self.train.n_items), np.float32)
        whole[np.arange(len(columns)), columns] = 1
        # Q is symmetric: Q^2's columns are what Q makes twice of an item alone.
        twice = self._times_q(self._times_q(csr_array(whole)))[:, rows].T
        return 2 * once - twice

    def row_sums(self, rows: Rows) -> NDArray[np.floating[Any]]:
        return self._sums[rows]

    @cached_property
    def _sums(self) -> NDArray[np.float32]:
        ones = np.ones(self.train.n_items, np.float32)
        once = self._q_times(ones)
        return 2 * once - self._q_times(once) if self.values["second"] else once

    def _q_times(self, column: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.values["keeps_q"]:
            return np.asarray(self.matrix @ column)
        return np.asarray(self._times_q(column[None])[0])  # Q is symmetric


def power_of_product(
    left: csr_array, right: csr_array, power: float, largest: int | None = None
) -> csr_array:
    """(left @ right)^power by element; of each row the largest alone, if that is wanted."""
    from ltocf.graph.kernels.sparse import product as multiply

    few = left.shape[0] <= FEW and largest is None
    product = csr_array(left @ right) if few else multiply(left, right, largest=largest)
    values, exponent = product.data, np.float32(power)

    def raise_(first: int, last: int) -> None:
        np.power(values[first:last], exponent, out=values[first:last])

    share_out(raise_, len(values), SOME_VALUES)
    return product
