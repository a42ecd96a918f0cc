"""CMN when asked: a pair's score looks up the users who have the item, by attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ltocf.data.interactions import Rows
from ltocf.machine.threads import share_out
from ltocf.scorers.networks import PairScorer
from ltocf.scorers.scorer import Scores

LOWEST = -1e30  # the logit of a neighbour that is masked
ITEMS_AT_ONCE = 256  # that a thread scores before it takes the next ones


class MemoryScorer(PairScorer):
    """Scores of a tile of users, one item after another: what lies between stays in the cache.

    Arrays: `memory`, c in the paper; `near`, up to so many users of each item, -1 where there are
    fewer; the layers `next` and `combine` with their biases, and `output`.
    """

    kind = "memory network"

    def __init__(self, arrays: dict[str, NDArray[Any]], *, hops: int) -> None:
        super().__init__(arrays, hops=hops)
        of_product, of_found = np.split(arrays["combine.weight"], 2, axis=1)
        self.next_of_users = self.users @ arrays["next.weight"].T
        self.fixed = tuple(
            np.ascontiguousarray(array)
            for array in (
                self.items,
                self.users,
                arrays["memory"],
                # U2 o = sum p_v (U2 c_v): project the answers once, not what each pair finds.
                arrays["memory"] @ of_found.T,
                arrays["next.weight"],
                self.items @ arrays["next.weight"].T + arrays["next.bias"],
                arrays["next.bias"],
                of_product,
                arrays["combine.bias"],
                arrays["output"],
                arrays["near"],
            )
        )

    def __call__(self, users: Rows) -> Scores:
        users, repeated = np.unique(users, return_inverse=True)
        own = self.users[users]
        # What users ask of all memories, and the users' share of the next question. (n, users)
        asked = np.ascontiguousarray(self.users @ own.T)
        further = np.ascontiguousarray(self.next_of_users[users].T)
        vectors = np.ascontiguousarray(own.T)
        place = np.full(len(self.users), -1, np.int64)
        place[users] = np.arange(len(users))
        out = np.empty((len(self.items), len(users)), vectors.dtype)
        hops = self.values["hops"]

        def run(first: int, last: int) -> None:
            arguments = (hops, asked, further, vectors, place, *self.fixed, out)
            _score_items(first, last, *arguments)

        share_out(run, len(out), ITEMS_AT_ONCE)
        return np.ascontiguousarray(out.T[repeated])


@njit(cache=True, nogil=True, fastmath=True)
def _score_items(
    first: Any, last: Any, hops: Any, asked_all: Any, further: Any, vectors: Any, place: Any,
    items: Any, asked: Any, answers: Any, projected: Any, next_weight: Any, next_of_items: Any,
    next_bias: Any, of_product: Any, combine_bias: Any, output: Any, near: Any, out: Any,
) -> None:  # fmt: skip
    """Every array is (something, users): the innermost loop runs over users."""
    dim, n_users = vectors.shape
    shares = np.empty((near.shape[1], n_users), vectors.dtype)
    query, next_query = np.empty_like(vectors), np.empty_like(vectors)
    sums = np.empty(n_users, vectors.dtype)
    for item in range(first, last):
        known = near[item][near[item] >= 0]
        around, found, final = asked[known], answers[known], projected[known]
        for v in range(len(known)):  # z . m_v = m_u . m_v + e_i . m_v
            shares[v] = asked_all[known[v]] + (items[item] * around[v]).sum()
        _softmax(shares, known, place)
        for hop in range(1, hops):
            for d in range(dim):
                if hop == 1:  # W (m_u + e_i) splits; later queries are no such sums
                    next_query[d] = further[d] + next_of_items[item, d]
                else:
                    next_query[d] = next_bias[d]
                    _add_rows(next_query[d], next_weight[d], query)
                _add_rows(next_query[d], found[:, d], shares)
            query[:] = np.maximum(next_query, 0)
            for v in range(len(known)):
                shares[v] = 0
                _add_rows(shares[v], around[v], query)
            _softmax(shares, known, place)
        out[item] = 0
        for e in range(dim):
            sums[:] = combine_bias[e]
            _add_rows(sums, of_product[e] * items[item], vectors)
            _add_rows(sums, final[:, e], shares)
            for u in range(n_users):
                out[item, u] += output[e] * max(sums[u], 0)


@njit(cache=True, nogil=True, fastmath=True)
def _add_rows(sums: Any, weights: Any, rows: Any) -> None:
    """sums += weights @ rows, four rows at a time: a sum is read and written once for four."""
    n, whole = len(weights), len(weights) // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        one, two, three, four = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for u in range(len(sums)):
            sums[u] += a * one[u] + b * two[u] + c * three[u] + d * four[u]
    for k in range(whole, n):
        weight, row = weights[k], rows[k]
        for u in range(len(sums)):
            sums[u] += weight * row[u]


@njit(cache=True, nogil=True, fastmath=True)
def _softmax(logits: Any, known: Any, place: Any) -> None:
    """Over the neighbours other than oneself, in place; zero where no other is left."""
    for v in range(len(known)):
        if place[known[v]] >= 0:
            logits[v, place[known[v]]] = LOWEST
    for u in range(logits.shape[1]):
        high = logits[0, u] if len(known) else 0.0
        for v in range(1, len(known)):
            high = max(high, logits[v, u])
        for v in range(len(known)):
            logits[v, u] = np.exp(logits[v, u] - high)
    for v in range(len(known)):
        if place[known[v]] >= 0:
            logits[v, place[known[v]]] = 0
    for u in range(logits.shape[1]):
        total = logits[0, u] if len(known) else 0.0
        for v in range(1, len(known)):
            total += logits[v, u]
        if total > 0:
            for v in range(len(known)):
                logits[v, u] /= total
