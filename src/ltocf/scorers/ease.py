"""EASE and its family when asked: scores by the inverse of a Gram matrix, of items or of users."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from ltocf.data.histories import interaction_matrix
from ltocf.data.interactions import Rows
from ltocf.scorers.of_histories import LinearScorer, rows_times
from ltocf.scorers.scorer import Scores


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
        return self._finish(self.known[users], left)

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
