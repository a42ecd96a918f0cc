"""How a search judges what it tries: by some users of validation.

Settings are compared on all of them. So are blends, but never by users to whom their weights were
fitted: each half of the users judges weights that were fitted to the other half.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ltocf.data.splits import Split
from ltocf.errors import DataError
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate, find_hits, list_metrics, testable_users
from ltocf.scorers.complete import complete_for
from ltocf.scorers.scorer import Scorer
from ltocf.search.journal import Trial
from ltocf.search.mixing import Mix, Opinion, fit_mix, opinion_of, pooled

MOST_USERS = 4000  # enough to tell candidates apart, and to fit weights on half of them
FEW_USERS = 400  # enough to recognise what is far better
FEWEST_TO_HALVE = 40  # with fewer, everybody judges and nothing is blended
K = 20


class Rating(NamedTuple):
    metrics: Metrics
    opinion: Opinion


class Judged(NamedTuple):
    """A trial, and the scores that a blend needs of it."""

    trial: Trial
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
        self.half = np.zeros(len(self.users), dtype=bool)
        drawn = np.random.default_rng(seed).permutation(len(self.users))
        self.half[drawn[: len(drawn) // 2]] = True

    def rate(self, scorer: Scorer, progress: Progress = silent) -> Rating:
        users, valid = self.users, self.split.valid
        scorer = self._as_served(scorer)
        opinion = opinion_of(scorer, users, self.split.train, progress)
        hits = find_hits(opinion.top[:, :K], users, valid)
        values = list_metrics(hits, valid.user_degrees[users], (K,))
        metrics = {name: float(of_users.mean()) for name, of_users in values.items()}
        return Rating(metrics, opinion)

    def prefer(self, scorer: Scorer, other: Scorer) -> bool:
        """Whether `scorer` is better than `other` for a small sample of the users: a quick first
        check."""
        few, split = self.users[:: max(len(self.users) // FEW_USERS, 1)], self.split
        both = self._as_served(scorer), self._as_served(other)
        found = [evaluate(one, split.valid, split.train, users=few) for one in both]
        merits = [metrics["recall@20"] + metrics["ndcg@20"] for metrics in found]
        return merits[0] > merits[1]

    def _as_served(self, scorer: Scorer) -> Scorer:
        """If untouched items are held out, the scorer that lists use, which scores these too."""
        return complete_for(self.split.valid, scorer, self.split.train)

    def blend(
        self,
        opinions: Sequence[Opinion],
        progress: Progress = silent,
        firsts: Collection[int] = (),
    ) -> tuple[Mix, Metrics]:
        """The best mix of the scorers for all users, and metrics of mixes made in this way: those
        of each half of the users with the mix fitted to the other half. `firsts` as in
        `fit_mix`."""
        pool = pooled(opinions, self.users, self.split.valid, progress)
        figures: Metrics = {}
        for judging in (self.half, ~self.half):
            progress("blending", 0, None, "weighing")
            judged = pool.of(judging).metrics(fit_mix(pool.of(~judging), firsts=firsts))
            share = float(judging.mean())
            figures = {name: figures.get(name, 0.0) + share * of for name, of in judged.items()}
        return fit_mix(pool, firsts=firsts), figures
