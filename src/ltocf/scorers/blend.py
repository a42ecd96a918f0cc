"""A blend when asked: a weighted sum of what several scorers say, each on its own scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ltocf.data.interactions import Interactions, Rows
from ltocf.scorers.complete import padded
from ltocf.scorers.scorer import NOBODY, Formula, Parts, Scorer, Scores, Terms

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class BlendScorer(Scorer):
    kind = "blend"

    def __init__(self, scorers: Sequence[Scorer], weights: Sequence[float]) -> None:
        self.scorers, self.weights = scorers, weights

    def __call__(self, users: Rows) -> Scores:
        return self._combine(lambda scorer: scorer(users))

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Scores:
        return self._combine(lambda scorer: scorer.from_history(histories, own))

    @property
    def follows_history(self) -> bool:
        return all(scorer.follows_history for scorer in self.scorers)

    @property
    def knows_untouched(self) -> bool:
        return any(scorer.knows_untouched for scorer in self.scorers)

    def grown(self, train: Interactions, n_known: int) -> Scorer | None:
        """Members that know nothing of such items say nothing of the new ones either."""
        members = [(scorer, scorer.grown(train, n_known)) for scorer in self.scorers]
        if not any(more is not None for _, more in members):
            return None
        grown = [more or padded(one, train, n_known) for one, more in members]
        return BlendScorer(grown, self.weights)

    def similar_items(self, items: Rows) -> Scores:
        return self._combine(lambda scorer: scorer.similar_items(items))

    def similar_users(self, users: Rows) -> Scores:
        return self._combine(lambda scorer: scorer.similar_users(users))

    def explain(self, items: Rows, history: csr_array, user: int = NOBODY) -> Terms:
        """A member's scores less their mean, over their spread, are a weighted sum of them."""
        own, popularity = np.zeros(len(items)), np.zeros(len(items))
        terms = np.zeros((history.nnz, len(items)))
        for scorer, weight in zip(self.scorers, self.weights, strict=True):
            scores = scorer.from_history(history, np.array([user], dtype=np.int32))
            factor = weight / max(float(scores.std(dtype=np.float64)), 1e-12)
            found, mean = scorer.explain(items, history, user), scorer.explain_mean(history, user)
            own += factor * (found.own - mean.own)
            popularity += factor * (found.popularity - mean.popularity)
            terms += factor * (found.of_history - mean.of_history)
        return Terms(own, terms, popularity)

    def explain_mean(self, history: csr_array, user: int = NOBODY) -> Terms:
        """Standardised scores have the mean 0."""
        return Terms.of(np.zeros((history.nnz, 1)))

    def write(self, formula: Formula) -> str | None:
        members = [scorer.write(formula) for scorer in self.scorers]
        written = [member for member in members if member is not None]
        whole = len(written) == len(members)
        return formula.blended(written, self.weights) if whole else None

    def parts(self) -> Parts | None:
        members = [scorer.parts() for scorer in self.scorers]
        kept = [member for member in members if member is not None]
        if len(kept) < len(members):
            return None
        return Parts(self.kind, values={"weights": list(self.weights)}, members=kept)

    def _combine(self, scores_of: Callable[[Scorer], Scores]) -> Scores:
        total: Scores | None = None
        for weight, scorer in zip(self.weights, self.scorers, strict=True):
            scores = standardise(scores_of(scorer))
            scores *= np.float32(weight)
            total = scores if total is None else np.add(total, scores, out=total)
        assert total is not None, "a blend has at least one member"
        return total


def standardise(scores: Scores) -> Scores:
    """Each row less its mean, over its standard deviation; a constant row becomes zeros."""
    centred: Scores = scores - scores.mean(axis=1, keepdims=True, dtype=np.float64).astype("f4")
    spread = np.sqrt(np.einsum("ij,ij->i", centred, centred, dtype=np.float64) / scores.shape[1])
    centred /= np.maximum(spread, 1e-12).astype(np.float32)[:, None]
    return centred
