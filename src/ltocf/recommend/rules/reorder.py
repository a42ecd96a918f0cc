"""Apply the rules about a list as a whole to ranked lists: at most, pins, diversity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Rows
from ltocf.ranking.top_k import Ranked
from ltocf.recommend.rules.diversity import POOL, Likeness, alike, relevance
from ltocf.recommend.rules.rules import ItemRules

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def pool_size(rules: ItemRules, k: int, n_items: int) -> int:
    """How many of the best items to rank before a list of k is chosen from them."""
    return min(n_items, max(POOL, 5 * k) if rules.rules.reorder else k)


def reordered(
    pool: Ranked,
    k: int,
    rules: ItemRules,
    likeness: Likeness | None,
    all_scores: Callable[[int], NDArray[np.float32]],
) -> Ranked:
    """Lists of k from each one's pool, the best first.

    Pins come first, then greedily whatever is best among what may still be listed: by score, or
    with diversity d by (1 - d) relevance - d likeness to the most similar item already listed.
    `all_scores(n)` are the scores of all items in the n-th list, -inf where it may not be: pins
    are looked up there, and so is a list that its pool cannot fill.
    """
    items = np.full((len(pool.items), k), -1, np.int32)
    scores = np.full((len(pool.items), k), -np.inf, np.float32)
    for n in range(len(items)):
        chosen = _one_list(n, pool, k, rules, likeness, all_scores)
        for place, (item, score) in enumerate(chosen):
            items[n, place], scores[n, place] = item, score
    return Ranked(items, scores)


def _one_list(
    n: int,
    pool: Ranked,
    k: int,
    rules: ItemRules,
    likeness: Likeness | None,
    all_scores: Callable[[int], NDArray[np.float32]],
) -> list[tuple[int, float]]:
    counts = Counts(rules)
    pinned: list[tuple[int, float]] = []
    if len(rules.pins):
        of_pins = all_scores(n)[rules.pins]
        pinned = [
            (int(pin), float(score))
            for pin, score in zip(rules.pins, of_pins, strict=True)
            if score > -np.inf
        ][:k]
    for item, _ in pinned:
        counts.add(item)
    places = np.flatnonzero(pool.items[n] >= 0)
    items, scores = pool.items[n][places], pool.scores[n][places]
    chosen = _greedy(items, scores, pinned, k, rules.rules.diversity, likeness, counts)
    if len(chosen) < k and len(items) == pool.items.shape[1]:  # the pool was too small
        whole = all_scores(n)
        order = np.argsort(-whole, kind="stable")
        rest: Rows = order[whole[order] > -np.inf].astype(np.int32)
        chosen = _greedy(rest, whole[rest], chosen, k, 0.0, None, counts)
    return chosen


def _greedy(
    items: Rows,
    scores: NDArray[np.float32],
    start: list[tuple[int, float]],
    k: int,
    diversity: float,
    likeness: Likeness | None,
    counts: Counts,
) -> list[tuple[int, float]]:
    """`start` and more items, which come best first, until there are k."""
    chosen = list(start)
    taken = {item for item, _ in chosen}
    if not diversity or likeness is None or not len(items):
        for item, score in zip(items.tolist(), scores.tolist(), strict=True):
            if len(chosen) == k:
                break
            if item not in taken and counts.admits(item):
                counts.add(item)
                chosen.append((item, score))
        return chosen
    first = np.array([item for item, _ in chosen], dtype=np.int32)
    between = alike(likeness, np.concatenate([first, items]))
    nearest = between[len(first) :, : len(first)].max(axis=1, initial=0.0)
    between = between[len(first) :, len(first) :]
    good = (1 - diversity) * relevance(scores)
    open_ = np.array([item not in taken for item in items.tolist()])
    while len(chosen) < k and open_.any():
        best = int(np.argmax(np.where(open_, good - diversity * nearest, -np.inf)))
        open_[best] = False
        item = int(items[best])
        if counts.admits(item):
            counts.add(item)
            chosen.append((item, float(scores[best])))
            nearest = np.maximum(nearest, between[best])
    return chosen


class Counts:
    """How often each value of the attributes with a limit is in a list so far."""

    def __init__(self, rules: ItemRules) -> None:
        self._groups = rules.groups
        self._counts = [np.zeros(matrix.shape[1], dtype=np.int64) for _, matrix in rules.groups]

    def admits(self, item: int) -> bool:
        return all(
            (counts[_values(matrix, item)] < limit).all()
            for (limit, matrix), counts in zip(self._groups, self._counts, strict=True)
        )

    def add(self, item: int) -> None:
        for (_, matrix), counts in zip(self._groups, self._counts, strict=True):
            counts[_values(matrix, item)] += 1


def _values(matrix: csr_array, item: int) -> NDArray[np.integer]:
    values: NDArray[np.integer] = matrix.indices[matrix.indptr[item] : matrix.indptr[item + 1]]
    return values
