"""What a request names -> rows and masks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Id, IdMap, Interactions
from ltocf.recommend.ids import as_list, known_rows
from ltocf.scorers.scorer import Scores


def apply_popularity_and_blocks_(
    scores: Scores,
    cold: NDArray[np.bool_],
    popularity: NDArray[np.int64],
    blocked: NDArray[np.bool_] | None,
) -> Scores:
    """Scores with popularity for those who have nothing, and -inf where blocked; in place."""
    if cold.any():
        scores[cold] = popularity
    if blocked is not None:
        scores[:, blocked] = -np.inf
    return scores


def blocked_items(
    ids: IdMap, candidates: Iterable[Id] | None, exclude: Id | Iterable[Id]
) -> NDArray[np.bool_] | None:
    """A mask of the items that nobody may get, if there are any. (n_items,)"""
    out = ids.find(as_list(exclude))
    if candidates is None and not len(out):
        return None
    blocked = np.full(len(ids), candidates is not None)
    if candidates is not None:
        chosen = known_rows(ids, candidates, "candidate", strict=False)
        blocked[chosen] = False
    blocked[out[out >= 0]] = True
    return blocked


def owned_pairs(histories: csr_array, item_ids: IdMap) -> Interactions:
    """The histories as interactions of users 0, 1, ..."""
    users = np.repeat(np.arange(histories.shape[0]), np.diff(histories.indptr))
    return Interactions.build(users, histories.indices, histories.shape[0], item_ids)
