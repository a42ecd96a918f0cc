"""All-ranking metrics: every item that a user has not seen is a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions, Rows
from ltocf.distributed import joined_rows, own_share
from ltocf.errors import DataError
from ltocf.machine.threads import share_out
from ltocf.progress import Progress, silent
from ltocf.ranking.beyond import Counts, beyond_accuracy, intra_list_diversity
from ltocf.ranking.kernels import find_rows
from ltocf.ranking.top_k import length_of_list, ranked_tiles

Metrics = dict[str, float]
PerUser = dict[str, NDArray[np.float64]]


def evaluate(
    scorer: Callable[[Rows], NDArray[np.float32]],
    test: Interactions,
    seen: Interactions,
    ks: Sequence[int] = (20,),
    *,
    users: Rows | None = None,
    likeness: csr_array | None = None,
    progress: Progress = silent,
) -> Metrics:
    """Means over the users who have test items, or the given ones of them, of metrics named
    `recall@20` and so on, and the measures of `beyond_accuracy`, such as `coverage@20`.

    With `likeness`, rows of length 1 or 0 that describe the items, also `diversity@20`: 1 minus the
    mean cosine of two items of a list.
    """
    values, listed = evaluate_users(
        scorer, test, seen, ks, users=users, likeness=likeness, progress=progress
    )
    means = {name: float(of_users.mean()) for name, of_users in values.items()}
    return means | beyond_at(listed, seen, test)


def beyond_at(listed: dict[int, Counts], seen: Interactions, test: Interactions) -> Metrics:
    """`beyond_accuracy` at each length of lists."""
    found = {k: beyond_accuracy(counts, seen, test) for k, counts in listed.items()}
    return {f"{name}@{k}": value for k, values in found.items() for name, value in values.items()}


def evaluate_users(
    scorer: Callable[[Rows], NDArray[np.float32]],
    test: Interactions,
    seen: Interactions,
    ks: Sequence[int] = (20,),
    *,
    users: Rows | None = None,
    likeness: csr_array | None = None,
    progress: Progress = silent,
) -> tuple[PerUser, dict[int, Counts]]:
    """The metrics of each user who has test items, or of the given ones of them, in the order of
    their rows; and for each list length in how many lists each item is.

    Several processes share the users; each gets everything."""
    users = testable_users(test) if users is None else users
    if not len(users):
        raise DataError("nothing to evaluate: no user has test items")
    # Processes rank a share of the users each and exchange hits, which are small, not scores.
    everybody, users = users, users[own_share(len(users))]
    # One ranking serves all lengths: a list of 10 is the beginning of the list of 50.
    k = max(length_of_list(cut, test.n_items) for cut in ks)
    hits = np.zeros((len(users), k), np.bool_)
    counted = {k: np.zeros(test.n_items, np.int64) for k in ks}
    spread = {k: np.zeros(len(users)) for k in ks}
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
        hits[start:end] = find_hits(ranked.items, users[start:end], test)
        for cut, counts in counted.items():
            listed = ranked.items[:, :cut]
            counts += np.bincount(listed[listed >= 0], minlength=test.n_items)
            if likeness is not None:
                spread[cut][start:end] = intra_list_diversity(listed, likeness)
        start = end
    hits = np.concatenate(joined_rows(hits))
    by_all = {cut: sum_of(joined_rows(counts)) for cut, counts in counted.items()}
    values = list_metrics(hits, test.user_degrees[everybody], ks)
    if likeness is not None:
        values |= {f"diversity@{k}": np.concatenate(joined_rows(of)) for k, of in spread.items()}
    return values, by_all


def sum_of(counts: list[Counts]) -> Counts:
    total: Counts = np.sum(counts, axis=0)
    return total


def testable_users(test: Interactions, at_most: int | None = None, seed: int = 0) -> Rows:
    """The users who have test items, ascending; of more than `at_most`, a sample of that size."""
    users = np.flatnonzero(test.user_degrees).astype(np.int32)
    if at_most is None or len(users) <= at_most:
        return users
    drawn = np.random.default_rng([seed, len(users)]).choice(len(users), at_most, replace=False)
    return users[np.sort(drawn)]


def list_metrics(hits: NDArray[np.bool_], n_test: NDArray[np.int64], ks: Sequence[int]) -> PerUser:
    """The metrics of each list. hits[u, r]: whether user u's item of rank r is one of their
    n_test[u].

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


def find_hits(ranked: Rows, users: Rows, test: Interactions) -> NDArray[np.bool_]:
    """Whether each item of the users' lists is one of their test items. ranked (users, k)"""
    hits = np.zeros(ranked.shape, np.bool_)
    lists = np.ascontiguousarray(ranked)
    arrays = lists, users, test.indptr, test.items, hits
    share_out(lambda first, last: find_rows(first, last, *arrays), len(users), 1024)
    return hits
