"""Measures of lists beyond accuracy: how many items they show, how well known these are, and how
alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions, Rows

Counts = NDArray[np.int64]


def beyond_accuracy(listed: Counts, train: Interactions, taken: Interactions) -> dict[str, float]:
    """Of lists in which item i is `listed[i]` times, made from `train`, of people who then took
    what is in `taken`:

    coverage    the share of all items that is in somebody's list
    gini        how unequally lists treat items: 0 all alike, towards 1 a few have all the places
    novelty     the mean over places of -log2 of the share of people who have the item; an item that
                nobody has counts as one that one person has
    popularity  the mean over places of how many people have the item
    consumed    the same over what people took: lists above it push what is popular anyway
    cold        the share of places with an item that nobody has
    """
    degrees = train.item_degrees
    places = max(int(listed.sum()), 1)
    surprise = -np.log2(np.maximum(degrees, 1) / max(train.n_users, 1))
    return {
        "coverage": float((listed > 0).mean()),
        "gini": gini(listed),
        "novelty": float(listed @ surprise) / places,
        "popularity": float(listed @ degrees) / places,
        "consumed": float(degrees[taken.items].mean()) if len(taken) else 0.0,
        "cold": float(listed[degrees == 0].sum()) / places,
    }


def gini(counts: Counts) -> float:
    """The Gini coefficient: half the mean difference of two counts by the mean."""
    ascending = np.sort(counts).astype(np.float64)
    n, total = len(ascending), ascending.sum()
    if not total:
        return 0.0
    return float((2 * np.arange(1, n + 1) - n - 1) @ ascending / (n * total))


def intra_list_diversity(lists: Rows, likeness: csr_array) -> NDArray[np.float64]:
    """Of each list, 1 less the mean cosine over all pairs of its items; of a list with fewer than
    two items, 0. `likeness` has rows of length 1 or 0; lists end in -1. (n_lists,)"""
    owner, place = np.nonzero(lists >= 0)
    ones = np.ones(len(owner), dtype=np.float32)
    shape = (len(lists), likeness.shape[0])
    sums = csr_array((ones, (owner, lists[owner, place])), shape=shape) @ likeness
    # |sum of rows|^2 is the sum over all ordered pairs, each item with itself among them.
    squared = csr_array(sums.multiply(sums)).sum(axis=1)
    described = np.diff(likeness.indptr) > 0
    themselves = np.bincount(owner, described[lists[owner, place]], minlength=len(lists))
    counts: NDArray[np.int64] = (lists >= 0).sum(axis=1)
    pairs = counts * (counts - 1)
    return np.where(pairs > 0, 1 - (squared - themselves) / np.maximum(pairs, 1), 0.0)
