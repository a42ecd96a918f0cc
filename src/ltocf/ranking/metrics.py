"""All-ranking metrics: every item that a user has not seen is a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray
from torch import Tensor

from ltocf.data.interactions import Interactions, Rows
from ltocf.distributed import joined_rows, own_share
from ltocf.errors import DataError
from ltocf.progress import Progress, silent
from ltocf.ranking.top_k import length_of_list, ranked_tiles

Metrics = dict[str, float]
PerUser = dict[str, NDArray[np.float64]]


def evaluate(
    scorer: Callable[[Rows], Tensor],
    test: Interactions,
    seen: Interactions,
    ks: Sequence[int] = (20,),
    *,
    users: Rows | None = None,
    progress: Progress = silent,
) -> Metrics:
    """Means over the users who have test items, or the given ones of them, of metrics named
    `recall@20` and so on; `coverage@k` is the share of all items that is in somebody's list."""
    values, recommended = evaluate_users(scorer, test, seen, ks, users=users, progress=progress)
    means = {name: float(of_users.mean()) for name, of_users in values.items()}
    return means | {f"coverage@{cut}": float(found.mean()) for cut, found in recommended.items()}


def evaluate_users(
    scorer: Callable[[Rows], Tensor],
    test: Interactions,
    seen: Interactions,
    ks: Sequence[int] = (20,),
    *,
    users: Rows | None = None,
    progress: Progress = silent,
) -> tuple[PerUser, dict[int, NDArray[np.bool_]]]:
    """The metrics of each user who has test items, or of the given ones of them, in the order of
    their rows; and for each list length the items that are in somebody's list.

    Several processes share the users; each gets everything."""
    users = testable_users(test) if users is None else users
    if not len(users):
        raise DataError("nothing to evaluate: no user has test items")
    everybody, users = users, users[own_share(len(users))]
    k = max(length_of_list(cut, test.n_items) for cut in ks)
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
    hits = np.concatenate(joined_rows(hits))
    found_by_all = {
        cut: np.logical_or.reduce(joined_rows(found)) for cut, found in recommended.items()
    }
    return list_metrics(hits, test.user_degrees[everybody], ks), found_by_all


def testable_users(test: Interactions, at_most: int | None = None, seed: int = 0) -> Rows:
    """The users who have test items, ascending; of more than `at_most`, a sample of that size."""
    users = np.flatnonzero(test.user_degrees).astype(np.int32)
    if at_most is None or len(users) <= at_most:
        return users
    drawn = np.random.default_rng([seed, len(users)]).choice(len(users), at_most, replace=False)
    return users[np.sort(drawn)]


def list_metrics(hits: NDArray[np.bool_], n_test: NDArray[np.int64], ks: Sequence[int]) -> PerUser:
    """Of each list. hits[u, r]: whether user u's item of rank r is one of their n_test[u].

    Lists may be shorter than k, where there are fewer items.
    """
    metrics: PerUser = {}
    ranks = np.arange(1, hits.shape[1] + 1)
    discounts = 1 / np.log2(ranks + 1)
    ideal = np.cumsum(discounts)
    for k in ks:
        top, possible = hits[:, :k], np.minimum(n_test, k)
        count = top.sum(1)
        first = np.where(count > 0, top.argmax(1) + 1, np.inf)
        precision_at_hits = (top * np.cumsum(top, 1) / ranks[:k]).sum(1)
        of_lists = {
            "recall": count / n_test,
            "ndcg": (top * discounts[:k]).sum(1) / ideal[possible - 1],
            "precision": count / k,
            "hit": (count > 0).astype(np.float64),
            "map": precision_at_hits / possible,
            "mrr": 1 / first,
        }
        metrics |= {f"{name}@{k}": values for name, values in of_lists.items()}
    return metrics


@njit(cache=True, parallel=True)
def _find_hits(ranked: Any, users: Any, indptr: Any, items: Any, out: Any) -> None:
    for b in prange(len(users)):
        wanted = items[indptr[users[b]] : indptr[users[b] + 1]]
        for r in range(ranked.shape[1]):
            at = np.searchsorted(wanted, ranked[b, r])
            out[b, r] = at < len(wanted) and wanted[at] == ranked[b, r]
