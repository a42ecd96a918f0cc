"""Scores for people who were not in training: gradient steps find a vector for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.scorers.scorer import Scorer, Scores, Vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NEGATIVES = 1024  # unseen items that a new user's own vector is trained against
STEP = 0.05  # Adam's learning rate, relative to the typical size of an item's coordinate
L2 = 1e-2  # penalty on the new vector, relative to the typical size of an item's vector


def score_new(scorer: Scorer, histories: csr_array, *, steps: int = 0, seed: int = 0) -> Scores:
    """Scores of all items for people with these histories. (rows, n_items)

    With `steps`, each one's vector takes that many gradient steps of BPR on their own history.
    """
    if steps == 0:
        return scorer.from_history(histories)
    found, vectors = _vectors(scorer), new_vectors(scorer, histories, steps=steps, seed=seed)
    scores: Scores = vectors @ found.items.T
    return scores if found.bias is None else scores + found.bias


def new_vectors(scorer: Scorer, histories: csr_array, *, steps: int, seed: int = 0) -> Scores:
    """The final vectors of new users: a weighted sum over their histories, where the model has
    that, plus a vector of their own that `steps` gradient steps find. (rows, dim)"""
    found = _vectors(scorer)
    if found.history is None:
        start = np.zeros((histories.shape[0], found.items.shape[1]), np.float32)
    else:
        start = scorer.fold_in(histories)
    generator = np.random.default_rng(seed)
    owned = np.split(histories.indices, histories.indptr[1:-1])
    return np.stack(
        [
            vector + own_vector(found, vector, history, steps=steps, generator=generator)
            for vector, history in zip(start, owned, strict=True)
        ]
    )


def own_vector(
    vectors: Vectors, start: Scores, history: Rows, *, steps: int, generator: np.random.Generator
) -> Scores:
    """What to add to `start` so that the history outranks unseen items, by Adam from zero. (dim,)

    BPR of each item of the history against the same uniformly drawn unseen ones.
    """
    items = vectors.items
    own, first, second = (np.zeros_like(start) for _ in range(3))  # and Adam's two moments
    drawn = generator.integers(len(items), size=NEGATIVES)
    unseen = drawn[~np.isin(drawn, history)]
    if not len(history) or not len(unseen):
        return own
    size = float(np.sqrt(np.square(items).mean()))
    positive, negative = items[history], items[unseen]
    ahead: Scores | float = 0.0  # of negatives by popularity alone
    if vectors.bias is not None:
        ahead = vectors.bias[unseen] - vectors.bias[history][:, None]
    for step in range(1, steps + 1):
        vector = start + own
        # d softplus(x) / dx = 1 / (1 + exp(-x)) for x = negative . v - positive . v + ahead
        apart = (negative @ vector) - (positive @ vector)[:, None] + ahead
        pull = 1 / (1 + np.exp(np.clip(-apart, -80, 80))) / apart.size
        gradient = pull.sum(0) @ negative - pull.sum(1) @ positive
        gradient += L2 * own / len(own) / size**2
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        spread = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        own = (own - STEP * size * first / (1 - 0.9**step) / spread).astype(np.float32)
    return own


def _vectors(scorer: Scorer) -> Vectors:
    vectors = scorer.vectors()
    if vectors is None:
        raise ConfigError("this model has no vector for a user, so gradient_steps must be 0")
    return vectors
