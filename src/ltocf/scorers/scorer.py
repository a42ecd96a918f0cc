"""The cheap half of a fitted model: what answers questions, whatever the model is, without torch.

Arrays in, arrays out: a scorer is made of NumPy arrays, so that a saved run answers without the
libraries that trained it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Interactions, Rows
from ltocf.errors import ConfigError
from ltocf.ranking.top_k import Products

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Scores = NDArray[np.float32]
NOBODY = -1  # in place of a user's row: somebody who was not there in training
NO_SUM = (
    "this model's score is not a sum over the user's history, so it has no exact reasons; "
    "use ltocf, lightgcn or a linear filter such as gfcf"
)


class Terms(NamedTuple):
    """`own + popularity + of_history.sum(0)` are the scores of k items."""

    own: NDArray[np.float64]  # of the user's own vector (k,)
    of_history: NDArray[np.float64]  # (len(history), k), in the order of its entries
    popularity: NDArray[np.float64]  # what an item has with everybody (k,)

    @classmethod
    def of(cls, of_history: NDArray[np.float64]) -> Terms:
        """Where all of the scores comes from the history."""
        nothing = np.zeros(of_history.shape[1])
        return cls(nothing, of_history, nothing)


class Vectors(NamedTuple):
    """Scores are dot products of these, plus the items' bias. `history`, if there is any, holds
    what a new user's vector is a weighted sum of, by item."""

    users: Scores  # (n_users, dim)
    items: Scores  # (n_items, dim)
    history: Scores | None  # (n_items, dim)
    bias: Scores | None = None  # (n_items,)

    def with_bias(self) -> tuple[Scores, Scores]:
        """Users and items whose dot products alone are the scores: a bias is one more dimension,
        in which every user has 1."""
        if self.bias is None:
            return self.users, self.items
        ones = np.ones((len(self.users), 1), np.float32)
        return np.hstack([self.users, ones]), np.hstack([self.items, self.bias[:, None]])


@dataclass(frozen=True)
class Parts:
    """Everything that a scorer is beside its training data, to be written to a file: its kind by
    name, arrays, plain values, and the scorers that it is made of."""

    kind: str
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    members: Sequence[Parts] = ()


class Formula(Protocol):
    """From histories to scores in a few steps, to be written in another program's language. Each
    step gives the name of its result."""

    def weighted(self, weights: HistoryWeights, *, rooted: bool = False) -> str:
        """The weighted rows of new people; `rooted` over the root of how many items they have."""

    def times(self, rows: str, shape: tuple[int, int], table: Callable[[], Scores]) -> str:
        """The rows times a table of that shape, made if there is room for it."""

    def constant(self, scores: Scores) -> str:
        """The same scores for everybody."""

    def unit(self, rows: str) -> str:
        """The rows, each divided by its length."""

    def plus(self, rows: str, scores: Scores) -> str:
        """The rows, to each of which the same scores are added."""

    def blended(self, members: Sequence[str], weights: Sequence[float]) -> str:
        """The weighted sum of scores, each row of which is standardised first."""


class Scorer(ABC):
    """Scores of every item for known users and for histories, and what follows from them."""

    @abstractmethod
    def __call__(self, users: Rows) -> Scores:
        """Scores of all items for known users, the caller's to change. (len(users), n_items)"""

    @abstractmethod
    def from_history(self, histories: csr_array, own: Rows | None = None) -> Scores:
        """Scores of all items for anybody with these histories. (rows, n_items)

        `own` names the known user whose own part each row keeps, or NOBODY; without it they are
        all new. A model that has nothing but its users' own parts refuses newcomers.
        """

    def best_scores(self, users: Rows, most: Sequence[int]) -> Scores:
        """The same as a call, in which a score that is not among that many best ones of its row may
        be -inf: a scorer that can tell beforehand need not compute it."""
        return self(users)

    def best_from_history(
        self, histories: csr_array, own: Rows | None, most: Sequence[int]
    ) -> Scores:
        """The same of `from_history`."""
        return self.from_history(histories, own)

    @abstractmethod
    def similar_items(self, items: Rows) -> Scores:
        """How alike all items are to each of these. (len(items), n_items)"""

    @abstractmethod
    def similar_users(self, users: Rows) -> Scores:
        """How alike all users are to each of these. (len(users), n_users)"""

    def explain(self, items: Rows, history: csr_array, user: int = NOBODY) -> Terms:
        """The exact terms of the scores that somebody with this history, one row, gives to these
        items; they may be a known user. Memory: O(history x items)."""
        raise ConfigError(NO_SUM)

    def explain_mean(self, history: csr_array, user: int = NOBODY) -> Terms:
        """The exact terms of the mean score of all items, as those of one item."""
        raise ConfigError(NO_SUM)

    @property
    def follows_history(self) -> bool:
        """Whether a known user's scores follow from their history."""
        return True

    @property
    def knows_untouched(self) -> bool:
        """Whether it scores items that nobody has touched by what they are."""
        return False

    def grown(self, train: Interactions, n_known: int) -> Scorer | None:
        """The same for more items, which nobody has touched and which come after the first
        `n_known` in `train`: as if it had been fitted with them. None if it cannot tell."""
        return None

    def with_recency(self, recency: float) -> Scorer | None:
        """The same model looking at histories with another recency, if that needs no new fit."""
        return None

    def vectors(self) -> Vectors | None:
        """What the scores are dot products of, if they are."""
        return None

    def products(self) -> Products | None:
        """The same of known users, made when they are asked for; many are then ranked faster."""
        return None

    def fold_in(self, histories: csr_array, own: Rows | None = None) -> Scores:
        """The vectors of users with these histories and nothing of their own; `own` as above.
        (rows, dim)"""
        raise ConfigError(
            "this model has a vector for each user of its training data and none for new ones; "
            "use ltocf, lightgcn or a closed form such as gfcf to recommend from a history, or let "
            "gradient_steps=50 (--gradient-steps 50) find one for a model of vectors"
        )

    def write(self, formula: Formula) -> str | None:
        """Write how a new person's scores follow from their history; none if it takes more than
        the steps of a formula."""
        return None

    def parts(self) -> Parts | None:
        """What a file has to keep of it; none for a scorer that only its model can make."""
        return None


def cosines(vectors: Scores, rows: Rows) -> Scores:
    """Of each of the rows' vectors with all. (len(rows), len(vectors))"""
    lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
    found: Scores = vectors[rows] @ vectors.T
    found /= lengths[rows][:, None]
    found /= lengths
    return found
