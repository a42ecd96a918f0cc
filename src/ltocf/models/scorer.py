"""The cheap half of a fitted model: what answers questions, whatever the model is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError

NOBODY = -1  # in place of a user's row: somebody who was not there in training


class Terms(NamedTuple):
    """`own + sum(of_history)` is the score."""

    own: float
    of_history: NDArray[np.float64]  # (len(history),)


class Vectors(NamedTuple):
    """Scores are dot products of these. `history`, if there is any, holds what a new user's vector
    is a weighted sum of, by item."""

    users: Tensor  # (n_users, dim)
    items: Tensor  # (n_items, dim)
    history: Tensor | None  # (n_items, dim)


class Scorer(ABC):
    """Scores of every item for known users and for histories, and what follows from them."""

    @abstractmethod
    def __call__(self, users: Rows) -> Tensor:
        """Scores of all items for known users. (len(users), n_items)"""

    @abstractmethod
    def from_history(self, histories: csr_array, own: Rows | None = None) -> Tensor:
        """Scores of all items for anybody with these histories. (rows, n_items)

        `own` names the known user whose own part each row keeps, or NOBODY; without it they are
        all new. A model that has nothing but its users' own parts refuses newcomers.
        """

    @abstractmethod
    def similar_items(self, items: Rows) -> Tensor:
        """How alike all items are to each of these. (len(items), n_items)"""

    @abstractmethod
    def similar_users(self, users: Rows) -> Tensor:
        """How alike all users are to each of these. (len(users), n_users)"""

    def explain(self, readout: Tensor, history: csr_array, user: int = NOBODY) -> Terms:
        """The exact terms of `readout @ scores`, a weighted sum over all items, for somebody with
        this history, one row, who may be a known user. readout (n_items,)"""
        raise ConfigError(
            "this model's score is not a sum over the user's history, so it has no exact reasons; "
            "use ltocf, lightgcn or a linear filter such as gfcf"
        )

    def with_recency(self, recency: float) -> Scorer | None:
        """The same model looking at histories with another recency, if that needs no new fit."""
        return None

    def vectors(self) -> Vectors | None:
        """What the scores are dot products of, if they are."""
        return None

    def fold_in(self, histories: csr_array, own: Rows | None = None) -> Tensor:
        """The vectors of users with these histories and nothing of their own; `own` as above.
        (rows, dim)"""
        raise ConfigError(
            "this model has a vector for each user of its training data and none for new ones; "
            "use ltocf, lightgcn or a closed form such as gfcf to recommend from a history, or let "
            "gradient_steps=50 (--gradient-steps 50) find one for a model of vectors"
        )


def cosines(vectors: Tensor, rows: Rows) -> Tensor:
    """Of each of the rows' vectors with all. (len(rows), len(vectors))"""
    lengths = torch.linalg.vector_norm(vectors, dim=1).clamp(min=1e-12)
    chosen = torch.from_numpy(rows).long()
    found: Tensor = vectors[chosen] @ vectors.T / lengths[chosen][:, None] / lengths
    return found
