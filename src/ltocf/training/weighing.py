"""Choose on validation pairs how a trained model's lists are weighed: how fast a history fades, and
how much popularity counts. Neither needs another training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import evaluate_users, testable_users

LADDERS = {
    "recency": (0.2, 0.4, 0.7, 1.0, 1.4, 2.0),
    "popularity": (0.05, 0.1, 0.2, 0.4, 0.7, 1.2, 2.0, 3.5),  # in standard deviations of the scores
}
USERS = 5_000  # at most, on whose lists a weight is measured
CLEARLY = 2.0  # a gain of fewer standard errors may be chance

Merit = Callable[[str], NDArray[np.float64]]  # of each user, with the name of the stage to show


def weigh_(model: Model, held_out: Interactions, seed: int, progress: Progress = silent) -> None:
    """Give each weight that is undecided the value that ranks the held-out pairs best, or 0 if the
    gain may be chance. Values are tried in rising order until two in a row do not improve on the
    best."""
    users = testable_users(held_out, USERS, seed)

    def merit(shown_as: str) -> NDArray[np.float64]:
        def watch(stage: str, done: float, total: float | None = None, note: str = "") -> None:
            progress(shown_as, done, total)

        scorer, seen = model.scorer(), model.graph.interactions
        found, _ = evaluate_users(scorer, held_out, seen, users=users, progress=watch)
        return found["recall@20"] + found["ndcg@20"]

    for name in model.undecided:
        chosen = 0.0
        try:
            chosen = _best(model, name, merit)
        finally:
            model.set_weight_(name, chosen)


def _best(model: Model, name: str, merit: Merit) -> float:
    plain = merit(f"weighing {name}")
    best, gain, worse = 0.0, np.zeros_like(plain), 0
    for weight in LADDERS[name]:
        model.set_weight_(name, weight)
        gained = merit(f"weighing {name}") - plain
        if gained.mean() > gain.mean():
            best, gain, worse = weight, gained, 0
        else:
            worse += 1
        if worse == 2:
            break
    return best if gain.mean() > CLEARLY * gain.std() / np.sqrt(len(gain)) else 0.0
