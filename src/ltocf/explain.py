"""Exact reasons: a score as the sum of a user's own part and one term for each item he has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltocf.data.interactions import Id, Rows
from ltocf.errors import ConfigError
from ltocf.models.base import DotScorer, FilterModel, HistoryModel, Model, Scorer, normalise_rows
from ltocf.new_users import history_matrix
from ltocf.propagation.filter import evaluate

SINGLES = 256  # histories of one item that are scored at a time
EXACT = 1e-4  # of the largest score: how far float32 may be from an exact split


class Terms(NamedTuple):
    """`own + sum(of_history)` is the score."""

    own: float
    of_history: NDArray[np.float64]  # (len(history),)


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


@torch.no_grad()
def explain_score(
    model: Model, scorer: Scorer, item: int, history: Rows, user: int | None = None
) -> Terms:
    """The exact terms of the score that somebody with this history, ascending, gives to an item.

    Without `user` it is somebody new. A model whose score is no such sum is a ConfigError.
    """
    if isinstance(model, FilterModel) and isinstance(scorer, DotScorer):
        own = None if user is None else _own_part(model, user)
        return _split_dot_product(model, scorer, item, history, own)
    if isinstance(model, HistoryModel):
        return _split_closed_form(model, item, history)
    raise ConfigError(_no_sum(model))


def _own_part(model: FilterModel, user: int) -> Tensor:
    """h(0) e_u: what a graph filter leaves of a user's own vector in his final one. (dim,)"""
    h0 = evaluate(model.coefficients(), torch.zeros(1, dtype=torch.float64))
    return h0 * model.weight[user].double()


def _split_dot_product(
    model: FilterModel, scorer: DotScorer, item: int, history: Rows, own: Tensor | None
) -> Terms:
    assert scorer.history is not None, "a filter model has history embeddings"
    weights = normalise_rows(history_matrix([history], scorer.graph.n_items), scorer.graph)
    shares = torch.from_numpy(weights.data).double()[:, None]
    parts = shares * scorer.history[torch.from_numpy(weights.indices).long()].double()
    mine = parts.new_zeros(parts.shape[1]) if own is None else own
    target = scorer.items[item].double()
    if model.normalise is True and own is not None:  # a known user's vector has length 1
        target = target / torch.linalg.vector_norm(mine + parts.sum(0))
    return Terms(float(mine @ target), (parts @ target).numpy())


def _split_closed_form(model: HistoryModel, item: int, history: Rows) -> Terms:
    """What each item alone adds to the scores of nobody, if those sum to the scores of all.

    Some closed forms divide a whole row by its user's degree: they are sums up to one factor, the
    same for all items. Both are checked on every item, so a model that is no sum cannot slip by.
    """
    n_items = model.graph.n_items
    whole = model.score_histories(history_matrix([history], n_items))[0].double()
    nothing = model.score_histories(history_matrix([history[:0]], n_items))[0].double()
    terms, total = np.empty(len(history)), torch.zeros_like(whole)
    for start in range(0, len(history), SINGLES):
        singles = history_matrix(
            np.split(part := history[start : start + SINGLES], len(part)), n_items
        )
        added = model.score_histories(singles).double() - nothing
        terms[start : start + len(part)] = added[:, item].numpy()
        total += added.sum(0)
    factor = float((whole - nothing) @ total / (total @ total)) if total.any() else 1.0
    if (whole - nothing - factor * total).abs().max() > EXACT * whole.abs().max():
        raise ConfigError(_no_sum(model))
    return Terms(float(nothing[item]), terms * factor)


def _no_sum(model: Model) -> str:
    name = type(model).__name__
    return (
        f"{name}'s score is not a sum over the user's history, so it has no exact reasons; "
        "use ltocf, lightgcn or a linear filter such as gfcf"
    )
