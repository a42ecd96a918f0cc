"""Exact reasons: a score as the sum of a user's own part and one term for each item they have."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import torch
from scipy.sparse import csr_array

from ltocf.data.interactions import Id
from ltocf.models.scorer import NOBODY, Scorer, Terms


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a user's score of an item is what it is; `own + because['contribution'].sum() == score`.

    `because` has a row for each item of his history, the largest contribution first: item,
    contribution, and the columns that the data set has to display.
    """

    user: Id | None  # none: somebody known by his history alone
    item: Id
    score: float
    own: float  # from the user's own vector (a model without one: what everybody gets)
    because: pl.DataFrame

    def sentence(self, most: int = 3) -> str:
        """'because you went to A, B and C'; with fewer reasons where fewer speak for the item."""
        label = "name" if "name" in self.because.columns else "item"
        reasons = self.because.filter(pl.col("contribution") > 0).head(most)[label]
        names = [str(name) for name in reasons]
        if not names:
            return "because of nothing in the history: it is the user's own part that speaks for it"
        listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
        return f"because you went to {listed}"


def explain_score(scorer: Scorer, item: int, history: csr_array, user: int | None = None) -> Terms:
    """The exact terms of the score that somebody with this history, one row, gives to an item.

    Without `user` it is somebody new. A model whose score is no such sum is a ConfigError.
    """
    readout = torch.zeros(history.shape[1], dtype=torch.float64)
    readout[item] = 1
    return scorer.explain(readout, history, NOBODY if user is None else user)
