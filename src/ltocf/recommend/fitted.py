"""What lists are made of: a model's scorer, its data, and the pairs that it learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ltocf.data.catalogue import ItemChange
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.recommend.rules.diversity import Likeness, vectors_of
from ltocf.scorers.complete import complete
from ltocf.scorers.scorer import Scorer

if TYPE_CHECKING:
    from ltocf.models.base import Model


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The model itself is built only when it is asked for, since that needs torch."""

    dataset: Dataset
    scorer: Scorer
    train: Interactions
    make_model: Callable[[], Model]

    @cached_property
    def model(self) -> Model:
        return self.make_model()

    def with_items(self, changes: Sequence[ItemChange]) -> FittedModel:
        """The same model beside a catalogue after these changes: a new item is scored as if it had
        been there in training and nobody had touched it."""
        dataset = self.dataset.with_changes(changes)
        ids, tags = dataset.catalogue.ids, dataset.split.train.item_tags
        train = self.train.on_items(ids, tags)
        rows = ids.find([change.item for change in changes])
        changed = rows[train.item_degrees[rows] == 0]
        scorer = complete(self.scorer, train, self.train.n_items, changed)
        return replace(self, dataset=dataset, scorer=scorer, train=train)

    @property
    def seen(self) -> Interactions:
        """What known users have liked: whoever has nothing of it gets what is popular."""
        return self.dataset.split.seen

    @property
    def known(self) -> Interactions:
        """The items that known users have seen, liked or not, which are not recommended to them."""
        return self.dataset.split.known

    @cached_property
    def item_vectors(self) -> Likeness:
        """The vectors by which the model finds items alike."""
        vectors = self.scorer.vectors()
        return vectors_of(None if vectors is None else vectors.items, self.seen)
