"""What lists are made of: a model's cheap half, its data, and the pairs that it learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.recommend.rules.diversity import Likeness, vectors_of
from ltocf.scorers.scorer import Scorer

if TYPE_CHECKING:
    from ltocf.models.base import Model


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The model itself is made when it is asked for, which takes torch."""

    dataset: Dataset
    scorer: Scorer
    train: Interactions
    make_model: Callable[[], Model]

    @cached_property
    def model(self) -> Model:
        return self.make_model()

    @property
    def seen(self) -> Interactions:
        """What known users have liked: whoever has nothing of it gets what is popular."""
        return self.dataset.split.seen

    @property
    def known(self) -> Interactions:
        """What known users have met, liked or not, and are not recommended."""
        return self.dataset.split.known

    @cached_property
    def item_vectors(self) -> Likeness:
        """What makes items alike to the model."""
        vectors = self.scorer.vectors()
        return vectors_of(None if vectors is None else vectors.items, self.seen)
