"""Turbo-CF when asked: a similarity graph whose weights are raised to a power."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ltocf.data.interactions import Rows
from ltocf.machine.threads import share_out
from ltocf.scorers.of_histories import FEW, LinearScorer, rows_times
from ltocf.scorers.scorer import Scores

ROWS = 256  # of a matrix of items by items, as much of it as is ever made
SOME_VALUES = 1 << 20  # raised by a thread at a time


class PoweredScorer(LinearScorer):
    """Scores are r Q, or with `second` r (2Q - Q^2). The arrays hold Q by rows, or R_a: then
    Q = (R_a^T R_a)^power by element, of which some rows are made at a time."""

    kind = "powered similarities"

    @cached_property
    def matrix(self) -> csr_array:
        parts = tuple(self.arrays[name] for name in ("values", "indices", "indptr"))
        return csr_array(parts, shape=(len(parts[2]) - 1, self.train.n_items))

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
        whole = np.zeros((len(columns), self.train.n_items), np.float32)
        whole[np.arange(len(columns)), columns] = 1
        # Q is symmetric: Q^2's columns are what Q makes twice of an item alone.
        twice = self._times_q(self._times_q(csr_array(whole)))[:, rows].T
        return 2 * once - twice

    def row_sums(self, rows: Rows) -> NDArray[np.floating[Any]]:
        return self._sums[rows]

    @cached_property
    def _sums(self) -> NDArray[np.float32]:
        once = self._times_q(np.ones((1, self.train.n_items), np.float32))
        twice = 2 * once - self._times_q(once) if self.values["second"] else once
        return np.asarray(twice[0])


def power_of_product(left: csr_array, right: csr_array, power: float) -> csr_array:
    from ltocf.graph.kernels.sparse import product as multiply

    product = multiply(left, right) if left.shape[0] > FEW else csr_array(left @ right)
    values, exponent = product.data, np.float32(power)

    def raise_(first: int, last: int) -> None:
        np.power(values[first:last], exponent, out=values[first:last])

    share_out(raise_, len(values), SOME_VALUES)
    return product
