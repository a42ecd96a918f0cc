"""Exact reasons: a score as the sum of a user's own part and one term for each item he has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.data.histories import weigh
from ltocf.data.interactions import Id
from ltocf.errors import ConfigError
from ltocf.filters.chebyshev import evaluate
from ltocf.models.base import Model, Scorer
from ltocf.models.blend import Blend, BlendScorer
from ltocf.models.embedding import DotScorer, normalise_rows
from ltocf.models.filter import FilterModel
from ltocf.models.history import HistoryModel

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
    model: Model, scorer: Scorer, item: int, history: csr_array, user: int | None = None
) -> Terms:
    """The exact terms of the score that somebody with this history, one row, gives to an item.

    Without `user` it is somebody new. A model whose score is no such sum is a ConfigError.
    """
    readout = torch.zeros(model.graph.n_items, dtype=torch.float64)
    readout[item] = 1
    return _split(model, scorer, readout, history, user)


def _split(
    model: Model, scorer: Scorer, readout: Tensor, history: csr_array, user: int | None
) -> Terms:
    """The terms of `readout @ scores`, a weighted sum over all items. readout (n_items,)"""
    if isinstance(model, FilterModel) and isinstance(scorer, DotScorer):
        return _split_dot_product(model, scorer, readout, history, user)
    if isinstance(model, HistoryModel):
        return _split_closed_form(model, readout, history)
    if isinstance(model, Blend) and isinstance(scorer, BlendScorer):
        return _split_blend(model, scorer, readout, history, user)
    raise ConfigError(_no_sum(model))


def _split_dot_product(
    model: FilterModel, scorer: DotScorer, readout: Tensor, history: csr_array, user: int | None
) -> Terms:
    """A user's final vector is h(0) e_u and A[u, j] times row j of g(A) E for every j he has."""
    assert scorer.history is not None, "a filter model has history embeddings"
    weights = normalise_rows(weigh(history, scorer.recency), scorer.graph)
    shares = torch.from_numpy(weights.data).double()[:, None]
    parts = shares * scorer.history[torch.from_numpy(weights.indices).long()].double().cpu()
    target = readout @ scorer.items.double().cpu()
    own = torch.zeros_like(target)
    if user is not None:
        h0 = evaluate(model.coefficients().cpu(), torch.zeros(1, dtype=torch.float64))
        own = h0 * model.weight[user].double().cpu()
        if model.normalise is True:  # a known user's final vector has length 1
            target = target / torch.linalg.vector_norm(own + parts.sum(0))
    return Terms(float(own @ target), (parts @ target).numpy())


def _split_closed_form(model: HistoryModel, readout: Tensor, history: csr_array) -> Terms:
    """What each item alone adds to the scores of nobody, if those sum to the scores of all.

    Some closed forms divide a whole row by its user's degree: they are sums up to one factor, the
    same for all items. Both are checked on every item, so a model that is no sum cannot slip by.
    """
    weighted, n_items = weigh(history, model.recency), len(readout)

    def score(histories: csr_array) -> Tensor:
        return model.score_histories(histories).double().cpu()

    whole, nothing = score(weighted)[0], score(csr_array(np.zeros((1, n_items), np.float32)))[0]
    terms, total = np.empty(history.nnz), torch.zeros_like(whole)
    for start in range(0, history.nnz, SINGLES):
        some = slice(start, min(start + SINGLES, history.nnz))
        count = some.stop - some.start
        singles = (weighted.data[some], weighted.indices[some], np.arange(count + 1))
        added = score(csr_array(singles, shape=(count, n_items))) - nothing
        terms[some] = (added @ readout).numpy()
        total += added.sum(0)
    factor = float((whole - nothing) @ total / (total @ total)) if total.any() else 1.0
    if (whole - nothing - factor * total).abs().max() > EXACT * whole.abs().max():
        raise ConfigError(_no_sum(model))
    return Terms(float(nothing @ readout), terms * factor)


def _split_blend(
    model: Blend, scorer: BlendScorer, readout: Tensor, history: csr_array, user: int | None
) -> Terms:
    """A part's scores less their mean, over their spread, are a weighted sum of its scores too."""
    own, terms = 0.0, np.zeros(history.nnz)
    for part, each, weight in zip(model.parts, scorer.scorers, scorer.weights, strict=True):
        if user is None:
            scores = each.from_history(history)
        else:
            scores = each(np.array([user], dtype=np.int32))
        spread = scores.double().cpu().std(correction=0).clamp(min=1e-12)
        centred = (readout - readout.mean()) * (weight / spread)
        found = _split(part, each, centred, history, user)
        own, terms = own + found.own, terms + found.of_history
    return Terms(own, terms)


def _no_sum(model: Model) -> str:
    name = type(model).__name__
    return (
        f"{name}'s score is not a sum over the user's history, so it has no exact reasons; "
        "use ltocf, lightgcn or a linear filter such as gfcf"
    )
