"""Scores for people whom the model has never met, from what they have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.models.scorer import Scorer, Vectors

NEGATIVES = 1024  # unseen items that a new user's own vector is trained against
STEP = 0.05  # of Adam, relative to the usual size of an item's coordinate
L2 = 1e-2  # on their own vector, relative to the usual size of an item's vector


def history_matrix(histories: Sequence[Rows], n_items: int) -> csr_array:
    """What each one has, in the order of time, as rows of `histories.py`; of an item that comes
    twice the first time counts. (len(histories), n_items)"""
    indptr, items, entries = [0], [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    for history in histories:
        distinct, first = np.unique(history, return_index=True)
        rank = np.argsort(np.argsort(first))  # 0 for the earliest
        indptr.append(indptr[-1] + len(distinct))
        items.append(distinct.astype(np.int32))
        entries.append((1 / (len(distinct) - rank)).astype(np.float32))
    arrays = (np.concatenate(entries), np.concatenate(items), np.array(indptr))
    return csr_array(arrays, shape=(len(histories), n_items))


def score_new(scorer: Scorer, histories: csr_array, *, steps: int = 0, seed: int = 0) -> Tensor:
    """Scores of all items for people with these histories. (rows, n_items)

    With `steps`, each one's vector takes that many gradient steps of BPR on their own history.
    """
    if steps == 0:
        return scorer.from_history(histories)
    return new_vectors(scorer, histories, steps=steps, seed=seed) @ _vectors(scorer).items.T


def new_vectors(scorer: Scorer, histories: csr_array, *, steps: int, seed: int = 0) -> Tensor:
    """The final vectors of new users: a weighted sum over their histories, where the model has
    that, plus a vector of their own that `steps` gradient steps find. (rows, dim)"""
    items = _vectors(scorer).items
    if _vectors(scorer).history is None:
        start = items.new_zeros(histories.shape[0], items.shape[1])
    else:
        start = scorer.fold_in(histories)
    generator = torch.Generator().manual_seed(seed)
    owned = np.split(histories.indices, histories.indptr[1:-1])
    return torch.stack(
        [
            vector + own_vector(items, vector, history, steps=steps, generator=generator)
            for vector, history in zip(start, owned, strict=True)
        ]
    )


def own_vector(
    items: Tensor, start: Tensor, history: Rows, *, steps: int, generator: torch.Generator
) -> Tensor:
    """What to add to `start` so that the history outranks unseen items, by Adam from zero. (dim,)

    BPR of each item of the history against the same uniformly drawn unseen ones.
    """
    own = torch.zeros_like(start)
    drawn = torch.randint(len(items), (NEGATIVES,), generator=generator)
    unseen = drawn[~torch.isin(drawn, torch.from_numpy(history).long())]
    if not len(history) or not len(unseen):
        return own
    size = float(items.square().mean().sqrt())
    positive, negative = items[torch.from_numpy(history).long()], items[unseen]
    own.requires_grad_()
    optimizer = torch.optim.Adam([own], lr=STEP * size)
    for _ in range(steps):
        vector = start + own
        loss = F.softplus(negative @ vector - (positive @ vector)[:, None]).mean()
        loss = loss + L2 / 2 * own.square().mean() / size**2
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return own.detach()


def _vectors(scorer: Scorer) -> Vectors:
    vectors = scorer.vectors()
    if vectors is None:
        raise ConfigError("this model has no vector for a user, so gradient_steps must be 0")
    return vectors
