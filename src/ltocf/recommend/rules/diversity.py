"""Choose k items of a ranked pool: a good list whose items are not all alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ltocf.data.catalogue import Catalogue
from ltocf.data.interactions import Interactions, Rows
from ltocf.recommend.rules.rules import Rules

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Rows whose inner products measure how alike items are.
Likeness: TypeAlias = "csr_array | NDArray[np.float32]"
POOL = 100  # the least number of best items to choose unlike ones from


def unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Each row divided by its length, so that inner products are cosines; a row of zeros stays
    zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def rows_of(likeness: Likeness, items: Rows) -> NDArray[np.float32]:
    """The rows of these items, dense, without columns in which all of them are zero."""
    if isinstance(likeness, np.ndarray):
        return likeness[items]
    # Written by hand: SciPy's selection and product take longer than ranking the whole list.
    starts = likeness.indptr[items]
    counts = likeness.indptr[items + 1] - starts
    owners = np.repeat(np.arange(len(items)), counts)
    before = np.cumsum(counts) - counts
    entries = np.arange(len(owners)) + np.repeat(starts - before, counts)
    used, places = np.unique(likeness.indices[entries], return_inverse=True)
    dense = np.zeros((len(items), len(used)), np.float32)
    dense[owners, places] = likeness.data[entries]
    return dense


def relevance(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scores of a pool scaled to 0 for the worst and 1 for the best; equal scores are all 1."""
    low, high = float(scores.min()), float(scores.max())
    if high == low:
        return np.ones(len(scores))
    return (scores.astype(np.float64) - low) / (high - low)


def item_likeness(
    rules: Rules, catalogue: Catalogue, vectors: Callable[[], Likeness]
) -> Likeness | None:
    """What makes two items alike under these rules: rows whose inner products measure it."""
    if not rules.diversity:
        return None
    if rules.by == "vectors":
        return vectors()
    return catalogue.attributes


def vectors_of(items: Any | None, train: Interactions) -> Likeness:
    """A model's item vectors, each divided by its length; of a model without vectors, which users
    have each item."""
    if items is not None:
        return unit_rows(np.asarray(items))
    from scipy.sparse import csr_array  # imported here, since it takes long to load

    lengths = np.sqrt(np.maximum(train.item_degrees, 1))
    values = (1 / lengths[train.items]).astype(np.float32)
    shape = (train.n_items, train.n_users)
    return csr_array((values, (train.items, train.users)), shape=shape)
