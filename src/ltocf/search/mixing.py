"""Weights of a blend, fitted on held-out pairs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions, Rows
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, list_metrics
from ltocf.ranking.top_k import length_of_list, tile_bytes, top_k
from ltocf.scorers.scorer import Scorer

# NDCG@50 tells weights apart: longer lists contain more held-out items, so it is less noisy.
DEPTH = 50
POOL = 100  # best items of each scorer per user; a blend ranks only these, for speed
# First weights to try for a new member. They start small: a scorer whose few best items stand out
# far, such as sparse EASE, needs a small weight.
FIRST_WEIGHTS = tuple(0.03 * 2**step for step in range(7))
FINER = (1.5, 1.2)  # factors by which weights are then moved up and down
WORTH = (
    1.002  # the least gain of a further member, since each costs time wherever the blend is used
)
LAST = -1e6  # the score of empty places in a pool, so that they rank last

Mix = dict[int, float]  # weights by the scorer's number, the best scorer first
Scores = NDArray[np.float32]


class Opinion(NamedTuple):
    """A scorer and its best items for some users."""

    scorer: Scorer
    top: Rows  # (users, POOL), -1 where there are fewer


def opinion_of(
    scorer: Scorer, users: Rows, seen: Interactions, progress: Progress = silent
) -> Opinion:
    k = length_of_list(POOL, seen.n_items)

    def ranked(done: int) -> None:
        progress("judging", done, len(users))

    found = top_k(scorer, users, k, n_items=seen.n_items, seen=seen, progress=ranked)
    return Opinion(scorer, found.items)


class Pool(NamedTuple):
    """For some users, the items that are among the best of any scorer."""

    scores: Scores  # of each scorer, standardised over all items. (scorers, users, pool)
    wanted: NDArray[np.bool_]  # whether the item is held out. (users, pool)
    n_wanted: NDArray[np.int64]  # of all items. (users,)

    def of(self, users: NDArray[np.bool_]) -> Pool:
        """The pool of some of the users."""
        scores = np.ascontiguousarray(self.scores[:, users])
        return Pool(scores, self.wanted[users], self.n_wanted[users])

    def metrics(self, weights: Mapping[int, float], k: int = 20) -> Metrics:
        hits = np.zeros((len(self.n_wanted), min(k, self.wanted.shape[1])), np.bool_)
        _find_hits(self.scores, self._vector(weights), self.wanted, hits)
        lists = list_metrics(hits, self.n_wanted, (k,))
        return {name: float(values.mean()) for name, values in lists.items()}

    def ndcg(self, weights: Mapping[int, float]) -> float:
        """NDCG@50 alone, for speed: fitting weights computes it hundreds of times."""
        discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
        gains = np.zeros(len(self.n_wanted))
        _find_gains(self.scores, self._vector(weights), self.wanted, discounts, gains)
        ideal = np.cumsum(discounts)[np.minimum(self.n_wanted, DEPTH) - 1]
        return float((gains / ideal).mean())

    def _vector(self, weights: Mapping[int, float]) -> Scores:
        vector = np.zeros(len(self.scores), np.float32)
        vector[list(weights)] = list(weights.values())
        return vector


class _Tried(NamedTuple):
    ndcg: float
    weights: Mix


def fit_mix(pool: Pool, most: int = 3, firsts: Collection[int] = ()) -> Mix:
    """Up to `most` scorers and their weights, chosen so that held-out pairs are ranked best.

    Start with the best scorer and add the one that gains most. After each addition, every earlier
    member but the first is replaced if another scorer gains more in its place. What is best alone
    is not always best with others, so this begins with each of `firsts` too."""
    alone = [pool.ndcg({member: 1.0}) for member in range(len(pool.scores))]
    begun = {int(np.argmax(alone)), *firsts}
    grown = [_grown(pool, _Tried(alone[member], {member: 1.0}), most) for member in sorted(begun)]
    mix = max(grown, key=lambda tried: tried.ndcg)
    return {member: round(weight, 4) for member, weight in mix.weights.items()}


def _grown(pool: Pool, mix: _Tried, most: int) -> _Tried:
    """The mix with more members, as many as gain."""
    while len(mix.weights) < min(most, len(pool.scores)):
        larger = _joined(pool, mix.weights)
        if larger.ndcg < mix.ndcg * WORTH:
            break
        mix = larger
        for member in list(mix.weights)[1:-1]:
            rest = {other: weight for other, weight in mix.weights.items() if other != member}
            mix = max(mix, _joined(pool, rest), key=lambda tried: tried.ndcg)
    return mix


def _joined(pool: Pool, weights: Mix) -> _Tried:
    """The blend with one more member: the one that gains most with any of FIRST_WEIGHTS. Then each
    weight but the first is moved up or down for as long as that gains."""
    best = max(
        (
            _Tried(pool.ndcg(weights | {member: weight}), weights | {member: weight})
            for member in range(len(pool.scores))
            if member not in weights
            for weight in FIRST_WEIGHTS
        ),
        key=lambda tried: tried.ndcg,
    )
    for factor in FINER:
        before = None
        while best is not before:
            before = best
            for member in list(best.weights)[1:]:
                for moved in (best.weights[member] * factor, best.weights[member] / factor):
                    weights = best.weights | {member: moved}
                    tried = _Tried(pool.ndcg(weights), weights)
                    best = max(best, tried, key=lambda tried: tried.ndcg)
    return best


def pooled(
    opinions: Sequence[Opinion], users: Rows, held_out: Interactions, progress: Progress = silent
) -> Pool:
    """The items in any scorer's lists, with the standardised scores that all scorers give them."""
    items = _union([opinion.top for opinion in opinions])
    scores = np.empty((len(opinions), *items.shape), np.float32)
    tile = tile_bytes(held_out.n_items) // (4 * held_out.n_items)
    for member, opinion in enumerate(opinions):
        for start in range(0, len(users), tile):
            progress("blending", start, len(users))
            rows = slice(start, start + tile)
            table = np.asarray(opinion.scorer(users[rows]), np.float32)
            spread = np.maximum(table.std(axis=1), 1e-12)[:, None]
            taken = np.take_along_axis(table, np.maximum(items[rows], 0), axis=1)
            scores[member, rows] = (taken - table.mean(axis=1)[:, None]) / spread
    scores[:, items < 0] = LAST
    wanted = np.zeros(items.shape, np.bool_)
    _find_wanted(items, users, held_out.indptr, held_out.items, wanted)
    return Pool(scores, wanted, held_out.user_degrees[users].astype(np.int64))


def _union(tops: Sequence[Rows]) -> NDArray[np.int64]:
    """The different items of each row, and -1 where there are no more."""
    items = np.sort(np.concatenate(tops, axis=1).astype(np.int64), axis=1)[:, ::-1]
    again = np.zeros(items.shape, np.bool_)
    again[:, 1:] = items[:, 1:] == items[:, :-1]
    items = np.sort(np.where(again, -1, items), axis=1)[:, ::-1]
    return np.ascontiguousarray(items[:, : max(int((items >= 0).sum(1).max()), 1)])


@njit(cache=True)
def _find_wanted(items: Any, users: Any, indptr: Any, held_out: Any, out: Any) -> None:
    for row in range(items.shape[0]):
        own = held_out[indptr[users[row]] : indptr[users[row] + 1]]
        for column in range(items.shape[1]):
            at = np.searchsorted(own, items[row, column])
            out[row, column] = at < len(own) and own[at] == items[row, column]


@njit(cache=True, parallel=True)
def _find_hits(scores: Any, weights: Any, wanted: Any, found: Any) -> None:
    """found[u, r]: whether user u's item of rank r by the weighted sum is wanted."""
    for u in prange(scores.shape[1]):
        total = _sum(scores, weights, u)
        for c in range(len(total)):
            if wanted[u, c]:
                rank = _rank_of(total, c)
                if rank < found.shape[1]:
                    found[u, rank] = True


@njit(cache=True, parallel=True)
def _find_gains(scores: Any, weights: Any, wanted: Any, discounts: Any, gains: Any) -> None:
    """gains[u]: the sum of the discounts at the ranks of user u's wanted items."""
    for u in prange(scores.shape[1]):
        total = _sum(scores, weights, u)
        for c in range(len(total)):
            if wanted[u, c]:
                rank = _rank_of(total, c)
                if rank < len(discounts):
                    gains[u] += discounts[rank]


@njit(cache=True)
def _sum(scores: Any, weights: Any, u: int) -> Any:
    total = np.zeros(scores.shape[2], np.float32)
    for m in range(len(weights)):
        if weights[m] != 0:
            for c in range(len(total)):
                total[c] += weights[m] * scores[m, u, c]
    return total


@njit(cache=True)
def _rank_of(total: Any, c: int) -> int:
    """Counted, not sorted, since only few ranks are needed; ties go to the earlier column."""
    rank = 0
    for other in range(len(total)):
        rank += total[other] > total[c]
    for other in range(c):
        rank += total[other] == total[c]
    return rank
