"""Lists of known users from candidates by rounded scores, ranked by exact ones: for very many
items. How often that gives the exact list is measured, not assumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.ranking.quantised import QuantisedItems
from ltocf.recommend.lists import FittedModel, ItemList, ListOptions, make_lists
from ltocf.recommend.people import Person
from ltocf.recommend.rules.conditions import shelf_of
from ltocf.scorers.scorer import Scores

POOL = 4  # candidates for each place of a list
MEASURED_USERS = 200
SOME_NUMBERS = 2**23  # numbers of candidates' vectors held at a time


class Recall(NamedTuple):
    """The share of the items of exact lists that are in the approximate ones."""

    recall: float
    users: int  # number of users drawn at random to measure it


@dataclass(frozen=True, eq=False)
class ApproximateLists:
    """Calling it makes the lists of known users. Their scores are those of `make_lists`."""

    fitted: FittedModel
    options: ListOptions
    users: Scores  # scores are the products of these
    items: Scores
    index: QuantisedItems

    @classmethod
    def of(cls, fitted: FittedModel, options: ListOptions) -> ApproximateLists:
        vectors = fitted.scorer.vectors()
        if vectors is None:
            raise ConfigError(
                "approximate lists (--approximate) need a model whose scores are products of "
                "vectors, such as ltocf, lightgcn or mf; make exact lists of this one"
            )
        if options.rules.reorder or options.rules.boost:
            raise ConfigError(
                "approximate lists (--approximate) are in the order of scores alone: leave out "
                "boost, at_most, pin and diversity, or make exact lists"
            )
        users, items = vectors.with_bias()
        allowed = np.ones(len(items), dtype=bool)
        rules = options.rules.on(shelf_of(fitted.dataset))
        for blocked in (options.blocked, rules.blocked):
            if blocked is not None:
                allowed &= ~blocked[: len(items)]
        index = QuantisedItems.of(items, np.flatnonzero(allowed).astype(np.int32))
        return cls(fitted, options, users, items, index)

    def __call__(self, rows: Rows) -> list[ItemList]:
        warm = self.fitted.seen.user_degrees[rows] > 0
        found = iter(self._warm(rows[warm]))
        cold = iter(make_lists(self.fitted, list(map(Person, rows[~warm].tolist())), self.options))
        return [next(found if known else cold) for known in warm]

    def _warm(self, rows: Rows) -> list[ItemList]:
        known = self.fitted.known
        indptr = np.zeros_like(known.indptr) if self.options.keep_seen else known.indptr
        pool = min(POOL * self.options.k, max(len(self.index.rows), 1))
        lists = []
        step = max(1, SOME_NUMBERS // (pool * self.items.shape[1]))
        candidates = self.index.candidates(self.users[rows], pool, indptr, known.items, rows)
        candidates.sort(axis=1)  # of equal scores the lower item comes first
        for start in range(0, len(rows), step):
            some = candidates[start : start + step]
            scores = np.einsum(
                "ucd,ud->uc", self.items[some], self.users[rows[start : start + step]]
            )
            scores[some < 0] = -np.inf
            best = np.argsort(-scores, axis=1, kind="stable")[:, : self.options.k]
            items, scores = (np.take_along_axis(of, best, axis=1) for of in (some, scores))
            for theirs, score in zip(items, scores, strict=True):
                there = theirs >= 0
                lists.append(ItemList(theirs[there], score[there]))
        return lists

    def recall(self) -> Recall:
        """The recall of the exact lists of some users, always the same ones."""
        everybody = np.flatnonzero(self.fitted.seen.user_degrees).astype(np.int32)
        if not len(everybody):
            return Recall(1.0, 0)
        count = min(MEASURED_USERS, len(everybody))
        rows = np.sort(np.random.default_rng(0).choice(everybody, count, replace=False))
        exact = make_lists(self.fitted, list(map(Person, rows.tolist())), self.options)
        pairs = zip(exact, self(rows), strict=True)
        found = [len(np.intersect1d(one.items, other.items)) for one, other in pairs]
        return Recall(sum(found) / max(sum(len(one.items) for one in exact), 1), count)
