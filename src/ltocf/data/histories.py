"""Histories in which what came last counts most.

A history is a row whose entries are 1 / (1 + how many came later), or ones where nobody knows the
order. A model weighs an item by that entry to the power of its `recency`: with 0 all count alike.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError


def histories_of(train: Interactions, *, ordered: bool = True) -> csr_array:
    """The history of every user, in order if that is wanted and known. (n_users, n_items)"""
    entries = np.ones(len(train), dtype=np.float32)
    if ordered and train.timestamps is not None:
        entries /= 1 + train.later_counts
    return csr_array((entries, train.items, train.indptr), shape=(train.n_users, train.n_items))


def weighted_histories(train: Interactions, recency: float) -> csr_array:
    """The same, weighed."""
    check_recency(train, recency)
    return weigh(histories_of(train, ordered=recency > 0), recency)


def check_recency(train: Interactions, recency: float) -> None:
    if recency and train.timestamps is None:
        raise ConfigError(
            f"recency = {recency!r} needs the time of each interaction, which these data do not "
            "have; name the time column (for a folder of train.txt: 'ltocf prepare --ordered') "
            "or leave recency out"
        )


def weigh(histories: csr_array, recency: float) -> csr_array:
    """Entries to the power `recency`, each row then scaled to a mean of 1."""
    if not recency:
        ones = np.ones_like(histories.data, dtype=np.float32)
        return csr_array((ones, histories.indices, histories.indptr), shape=histories.shape)
    counts = np.diff(histories.indptr)
    weights = histories.data.astype(np.float64) ** recency
    rows = np.repeat(np.arange(len(counts)), counts)
    sums = np.bincount(rows, weights, minlength=len(counts))
    weights *= (counts / np.maximum(sums, 1e-300))[rows]
    arrays = (weights.astype(np.float32), histories.indices, histories.indptr)
    return csr_array(arrays, shape=histories.shape)
