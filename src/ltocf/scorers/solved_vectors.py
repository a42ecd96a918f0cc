"""iALS when asked: a user's vector is the best one for their history, found by one solve."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Rows
from ltocf.machine.threads import share_out
from ltocf.ranking.sums import dot_products
from ltocf.ranking.top_k import Products
from ltocf.scorers.of_histories import FEW, HistoryScorer
from ltocf.scorers.scorer import NOBODY, Scores, Terms, Vectors, cosines

CHUNK = 512  # rows solved by one task
KERNEL = "ltocf.graph.kernels.systems"


class SolvedVectorsScorer(HistoryScorer):
    """`items` holds their vectors H; the vector of somebody with weights s of their history is
    `(unobserved_weight H^T H + sum s h h^T + ridge)^-1 sum s h`."""

    kind = "solved vectors"

    def score_histories(self, histories: csr_array) -> Scores:
        return dot_products(self._solved(histories), self.arrays["items"])

    def _solved(self, weighted: csr_array) -> Scores:
        if weighted.shape[0] <= FEW and KERNEL not in sys.modules:
            rows = (csr_array(weighted[[row]]) for row in range(weighted.shape[0]))
            found = [_solve_one(row, self.arrays["items"], self.values) for row in rows]
            return np.array(found, np.float32).reshape(-1, self.arrays["items"].shape[1])
        return solve_rows(weighted, self.arrays["items"], self.values)

    def similar_items(self, items: Rows) -> Scores:
        return cosines(self.arrays["items"], items)

    def vectors(self) -> Vectors:
        return Vectors(self._solved(self.known), self.arrays["items"], None)

    def products(self) -> Products:
        items = self.arrays["items"]
        return Products(items, lambda rows: self._solved(self.known_histories(rows)))

    def fold_in(self, histories: csr_array, own: Rows | None = None) -> Scores:
        return self._solved(self.weights.weigh(histories, own))

    def explain(self, items: Rows, history: csr_array, user: int = NOBODY) -> Terms:
        return self._terms(self.arrays["items"][items].astype(np.float64), history, user)

    def explain_mean(self, history: csr_array, user: int = NOBODY) -> Terms:
        mean = self.arrays["items"].mean(axis=0, dtype=np.float64, keepdims=True)
        return self._terms(mean, history, user)

    def _terms(self, targets: NDArray[np.float64], history: csr_array, user: int) -> Terms:
        """The vector is linear in the sum over the history, given the matrix of all of it."""
        weighted = self.weights.weigh(history, np.array([user], dtype=np.int32))
        rows = self.arrays["items"][weighted.indices].astype(np.float64)
        shares = weighted.data.astype(np.float64)[:, None]
        matrix = rows.T @ (rows * shares) + gram_of(self.arrays["items"], self.values)
        matrix[np.diag_indices_from(matrix)] += ridges_of(weighted, self.values)[0]
        directions = np.linalg.solve(matrix, targets.T)
        return Terms.of(shares * (rows @ directions))


def solve_rows(rows: csr_array, others: Scores, values: Mapping[str, float]) -> Scores:
    """The best vectors of these weighted rows of the others, whose vectors are fixed."""
    found = np.zeros((rows.shape[0], others.shape[1]), np.float32)
    from ltocf.graph.kernels.systems import solve

    arrays = rows.indptr, rows.indices, rows.data.astype(np.float32), others
    fixed = gram_of(others, values), ridges_of(rows, values)
    share_out(lambda start, stop: solve(start, stop, *arrays, *fixed, found), len(found), CHUNK)
    return found


def _solve_one(row: csr_array, others: Scores, values: Mapping[str, float]) -> Scores:
    """The same as `solve_rows` of one row, without compiled code, which takes longer to load."""
    if not row.nnz:
        return np.zeros(others.shape[1], np.float32)
    near, weights = others[row.indices], row.data.astype(np.float32)
    matrix = gram_of(others, values) + near.T @ (near * weights[:, None])
    matrix[np.diag_indices_from(matrix)] += ridges_of(row, values)[0]
    solved: Scores = np.linalg.solve(matrix, weights @ near)
    return solved


def gram_of(others: Scores, values: Mapping[str, float]) -> Scores:
    gram: Scores = np.float32(values["unobserved_weight"]) * (others.T @ others)
    return gram


def ridges_of(rows: csr_array, values: Mapping[str, float]) -> Scores:
    counts = np.diff(rows.indptr) + values["unobserved_weight"] * rows.shape[1]
    ridges: Scores = (values["l2"] * counts ** values["frequency_power"]).astype(np.float32)
    return ridges
