"""Choose on validation pairs how much popularity to add to a model's scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import evaluate_users, testable_users
from ltocf.scorers.scorer import Scorer

LADDER = (0.05, 0.1, 0.2, 0.4, 0.7, 1.2, 2.0, 3.5)  # in standard deviations of the scores
USERS = 5_000  # at most, on whose lists a weight is measured
CLEARLY = 2.0  # a gain of fewer standard errors may be chance


def fit_popularity_(
    model: Model, held_out: Interactions, seed: int, progress: Progress = silent
) -> None:
    """Add popularity to the model's scores, with the weight that ranks the held-out pairs best; or
    none, if the gain may be chance. Weights are tried in rising order until two in a row do not
    improve on the best."""
    scorer, seen = model.weighing_popularity(), model.graph.interactions
    if scorer is None:
        return
    users = testable_users(held_out, USERS, seed)

    def watch(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        progress("weighing popularity", done, total)

    def merit(of: Scorer) -> NDArray[np.float64]:
        found, _ = evaluate_users(of, held_out, seen, users=users, progress=watch)
        return found["recall@20"] + found["ndcg@20"]

    plain = merit(scorer)
    best, gain, worse = 0.0, np.zeros_like(plain), 0
    for weight in LADDER:
        gained = merit(scorer.with_popularity(weight)) - plain
        if gained.mean() > gain.mean():
            best, gain, worse = weight, gained, 0
        else:
            worse += 1
        if worse == 2:
            break
    if gain.mean() > CLEARLY * gain.std() / np.sqrt(len(gain)):
        model.weigh_popularity_(best)
