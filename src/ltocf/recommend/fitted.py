"""What answers questions, and the one road from scores to lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions, Rows
from ltocf.ranking.top_k import Ranked
from ltocf.recommend.boards import shelf_of
from ltocf.recommend.joined import Person, score_people
from ltocf.recommend.rules import ItemRules, Rules
from ltocf.recommend.rules.listing import item_likeness, top_k_by_rules, vectors_of
from ltocf.recommend.rules.reorder import Likeness
from ltocf.scorers.scorer import Scorer, Scores

if TYPE_CHECKING:
    from ltocf.models.base import Model


@dataclass(frozen=True, eq=False)
class Fitted:
    """What answers questions: a model's cheap half, its data, and the pairs that it has learned
    from. The model itself is made when it is asked for, which takes torch."""

    dataset: Dataset
    scorer: Scorer
    train: Interactions
    make_model: Callable[[], Model]

    @cached_property
    def model(self) -> Model:
        return self.make_model()

    @property
    def seen(self) -> Interactions:
        return self.dataset.split.seen

    @cached_property
    def item_vectors(self) -> Likeness:
        """What makes items alike to the model."""
        vectors = self.scorer.vectors()
        return vectors_of(None if vectors is None else vectors.items, self.seen)

    def known_people(
        self, rows: Rows, removed: Rows
    ) -> tuple[Callable[[Rows], Scores], Interactions]:
        """What scores these users, and the items that they have met, as if they had never touched
        those that are removed."""
        known = self.dataset.split.known
        if not len(removed):
            return self.scorer, known

        def score(some: Rows) -> Scores:
            people = [Person.known(row)._replace(without=removed) for row in some.tolist()]
            return score_people(self.scorer, self.train, people)

        gone = np.isin(known.users, rows) & np.isin(known.items, removed)
        return score, known.select(~gone)

    def lists(
        self,
        score: Callable[[Rows], Scores],
        people: Rows,
        k: int,
        rules: Rules | None,
        seen: Interactions | None,
    ) -> tuple[Ranked, ItemRules]:
        """The lists of people whose scores are given, and the rules that they keep."""
        rules = rules or Rules()
        on = rules.on(shelf_of(self.dataset))
        likeness = item_likeness(rules, self.dataset.catalogue, lambda: self.item_vectors)
        n_items = self.seen.n_items
        lists = top_k_by_rules(score, people, k, on, n_items=n_items, seen=seen, likeness=likeness)
        return lists, on
