"""Exact reasons: a score as the sum of a user's own part and one term for each item they have."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import torch
from scipy.sparse import csr_array

from ltocf.data.interactions import Id
from ltocf.models.scorer import NOBODY, Scorer, Terms

# Of several columns to display, the one that names an item; else the first with text.
NAMES = ("name", "title", "label")


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a user's score of an item is what it is; `own + because['contribution'].sum() == score`.

    `because` has a row for each item of their history, the largest contribution first: item,
    contribution, and the columns that the data set has to display.
    """

    user: Id | None  # none: somebody known by their history alone
    item: Id
    score: float
    own: float  # from the user's own vector (a model without one: what everybody gets)
    because: pl.DataFrame

    def sentence(self, most: int = 3) -> str:
        """'because of A, B and C'; with fewer reasons where fewer speak for the item.

        An item does not speak for itself, and one with a score of 0 or less has no reason.
        """
        if self.score <= 0:
            return "not recommended: more speaks against it than for it"
        others = self.because.filter((pl.col("contribution") > 0) & (pl.col("item") != self.item))
        names = others.head(most).select(
            pl.coalesce(_label(others), pl.col("item").cast(pl.String))
        )
        listed = names.to_series().to_list()
        if not listed:
            return "because of the user's own part: nothing in the history speaks for it"
        return "because of " + " and ".join(
            [", ".join(listed[:-1]), listed[-1]] if listed[1:] else listed
        )


def _label(because: pl.DataFrame) -> pl.Expr:
    """What an item is called."""
    shown = because.drop("item", "contribution")
    texts = [name for name in shown.columns if shown[name].dtype == pl.String]
    named = [name for name in texts if name.lower() in NAMES]
    named += [name for name in texts if any(word in name.lower() for word in NAMES)]
    return pl.col((named + texts + ["item"])[0]).cast(pl.String)


def explain_score(scorer: Scorer, item: int, history: csr_array, user: int | None = None) -> Terms:
    """The exact terms of the score that somebody with this history, one row, gives to an item.

    Without `user` it is somebody new. A model whose score is no such sum is a ConfigError.
    """
    readout = torch.zeros(history.shape[1], dtype=torch.float64)
    readout[item] = 1
    return scorer.explain(readout, history, NOBODY if user is None else user)
