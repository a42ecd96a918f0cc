"""Apply the rules about a list as a whole to ranked lists: at most, pins, diversity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Rows
from ltocf.ranking.top_k import Ranked
from ltocf.recommend.rules.diversity import POOL, Likeness, relevance, rows_of
from ltocf.recommend.rules.rules import ItemRules

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def pool_size(rules: ItemRules, k: int, n_items: int) -> int:
    """How many of the best items to rank before a list of k is chosen from them."""
    if not rules.rules.reorder:
        return min(n_items, k)
    return min(n_items, max(POOL if rules.rules.diversity else 0, 5 * k))


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
    rows = rows_of(likeness, np.concatenate([first, items]))
    listed, rows = rows[: len(first)], rows[len(first) :]
    # How alike each is to the most similar one in the list: the cosine, 0 where it is negative.
    nearest = (rows @ listed.T).max(axis=1, initial=0.0)
    good = (1 - diversity) * relevance(scores)
    good[[item in taken for item in items.tolist()]] = -np.inf
    for _ in range(len(items)):
        best = int(np.argmax(good - diversity * nearest))
        if len(chosen) == k or good[best] == -np.inf:
            break
        good[best] = -np.inf
        item = int(items[best])
        if counts.admits(item):
            counts.add(item)
            chosen.append((item, float(scores[best])))
            np.maximum(nearest, rows @ rows[best], out=nearest)
    return chosen


class Counts:
    """How often each value of the attributes with a limit is in a list so far."""

    def __init__(self, rules: ItemRules) -> None:
        self._groups = [(limit, matrix, Counter[int]()) for limit, matrix in rules.groups]

    def admits(self, item: int) -> bool:
        return all(
            counts[value] < limit
            for limit, matrix, counts in self._groups
            for value in _values(matrix, item)
        )

    def add(self, item: int) -> None:
        for _, matrix, counts in self._groups:
            counts.update(_values(matrix, item))


def _values(matrix: csr_array, item: int) -> list[int]:
    values: list[int] = matrix.indices[matrix.indptr[item] : matrix.indptr[item + 1]].tolist()
    return values
