"""Who judges what a search tries: some users of validation, in two halves.

Settings are compared on all of them. The weights of a blend are fitted to one half; the other half
judges it, and everything that it is compared with, so that all figures are of the same people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ltocf.data.splits import Split
from ltocf.errors import DataError
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, find_hits, list_metrics, testable_users
from ltocf.scorers.scorer import Scorer
from ltocf.search.mixing import Mix, Opinion, fit_mix, opinion_of, pooled
from ltocf.training.records import merit

MOST_USERS = 4000  # enough to tell candidates apart, and to weigh members by half of them
FEWEST_TO_HALVE = 40  # with fewer, everybody judges and nothing is blended
K = 20


class Rating(NamedTuple):
    climbed: float  # merit for everybody
    judged: Metrics  # for the judging half
    opinion: Opinion


class Judges:
    """Users with held-out pairs."""

    def __init__(self, split: Split, seed: int) -> None:
        if not len(split.valid):
            raise DataError(
                "too few interactions to compare models on; name one instead (--model NAME)"
            )
        self.split = split
        self.users = testable_users(split.valid, MOST_USERS, seed)
        self.halved = len(self.users) >= FEWEST_TO_HALVE
        drawn = np.random.default_rng(seed).permutation(len(self.users))
        self.judging = np.ones(len(self.users), dtype=bool)
        if self.halved:
            self.judging[drawn[: len(drawn) // 2]] = False

    def rate(self, scorer: Scorer, progress: Progress = silent) -> Rating:
        users, valid = self.users, self.split.valid
        opinion = opinion_of(scorer, users, self.split.train, progress)
        hits = find_hits(opinion.top[:, :K], users, valid)
        values = list_metrics(hits, valid.user_degrees[users], (K,))
        everybody = {name: float(of_users.mean()) for name, of_users in values.items()}
        judged = {name: float(of_users[self.judging].mean()) for name, of_users in values.items()}
        return Rating(merit(everybody), judged, opinion)

    def blend(
        self, opinions: Sequence[Opinion], progress: Progress = silent
    ) -> tuple[Mix, Metrics]:
        """The best mix of the scorers by one half of the users, as the other half judges it."""
        pool = pooled(opinions, self.users, self.split.valid, progress)
        mix = fit_mix(pool.of(~self.judging))
        return mix, pool.of(self.judging).metrics(mix)
