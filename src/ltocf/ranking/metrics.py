"""All-ranking metrics: every item that a user has not seen is a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray
from torch import Tensor

from ltocf.data.interactions import Interactions, Rows
from ltocf.errors import DataError
from ltocf.progress import Progress, silent
from ltocf.ranking.top_k import ranked_tiles

Metrics = dict[str, float]


def evaluate(
    scorer: Callable[[Rows], Tensor],
    test: Interactions,
    seen: Interactions,
    ks: Sequence[int] = (20,),
    *,
    progress: Progress = silent,
) -> Metrics:
    """Means over the users who have test items, of metrics named `recall@20` and so on;
    `coverage@k` is the share of all items that is in somebody's list."""
    users = np.flatnonzero(test.user_degrees).astype(np.int32)
    if not len(users):
        raise DataError("nothing to evaluate: no user has test items")
    k = max(ks)
    hits = np.zeros((len(users), k), np.bool_)
    recommended = {k: np.zeros(test.n_items, np.bool_) for k in ks}
    start = 0
    for ranked in ranked_tiles(
        scorer,
        users,
        k,
        n_items=test.n_items,
        seen=seen,
        progress=lambda done: progress("ranking", done, len(users)),
    ):
        end = start + len(ranked.items)
        _find_hits(ranked.items, users[start:end], test.indptr, test.items, hits[start:end])
        for cut, found in recommended.items():
            listed = ranked.items[:, :cut]
            found[listed[listed >= 0]] = True
        start = end
    metrics = list_metrics(hits, test.user_degrees[users], ks)
    return metrics | {f"coverage@{cut}": float(found.mean()) for cut, found in recommended.items()}


def list_metrics(hits: NDArray[np.bool_], n_test: NDArray[np.int64], ks: Sequence[int]) -> Metrics:
    """Means over lists. hits[u, r]: whether user u's item of rank r is one of his n_test[u]."""
    metrics: Metrics = {}
    ranks = np.arange(1, hits.shape[1] + 1)
    discounts = 1 / np.log2(ranks + 1)
    ideal = np.cumsum(discounts)
    for k in ks:
        top, possible = hits[:, :k], np.minimum(n_test, k)
        count = top.sum(1)
        first = np.where(count > 0, top.argmax(1) + 1, np.inf)
        precision_at_hits = (top * np.cumsum(top, 1) / ranks[:k]).sum(1)
        per_user = {
            "recall": count / n_test,
            "ndcg": (top * discounts[:k]).sum(1) / ideal[possible - 1],
            "precision": count / k,
            "hit": count > 0,
            "map": precision_at_hits / possible,
            "mrr": 1 / first,
        }
        metrics |= {f"{name}@{k}": float(values.mean()) for name, values in per_user.items()}
    return metrics


@njit(cache=True, parallel=True)
def _find_hits(ranked: Any, users: Any, indptr: Any, items: Any, out: Any) -> None:
    for b in prange(len(users)):
        wanted = items[indptr[users[b]] : indptr[users[b] + 1]]
        for r in range(ranked.shape[1]):
            at = np.searchsorted(wanted, ranked[b, r])
            out[b, r] = at < len(wanted) and wanted[at] == ranked[b, r]
