"""Blend: a weighted sum of what several models say about the same user, each on its own scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import tee
from typing import Any, Self

import numpy as np
import torch
from pydantic import BaseModel, Field, field_validator
from torch import Tensor, nn

from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.config import Loss, TrainConfig, validated
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.attributes import Attributes
from ltocf.models.base import Model, ModelConfig, ParameterGroup
from ltocf.models.bspm import BSPM
from ltocf.models.chebycf import ChebyCF
from ltocf.models.ease import EASE
from ltocf.models.gfcf import GFCF
from ltocf.models.ials import IALS
from ltocf.models.itemknn import ItemKNN
from ltocf.models.lightgcn import LightGCN
from ltocf.models.ltocf import LTOCF
from ltocf.models.popularity import Popularity
from ltocf.models.rp3beta import RP3Beta
from ltocf.models.sparse_ease import SparseEASE
from ltocf.models.transitions import Transitions
from ltocf.models.turbocf import TurboCF
from ltocf.scorers.blend import BlendScorer

MEMBERS: dict[str, type[Model]] = {
    "ltocf": LTOCF,
    "lightgcn": LightGCN,
    "gfcf": GFCF,
    "bspm": BSPM,
    "chebycf": ChebyCF,
    "turbocf": TurboCF,
    "ease": EASE,
    "sparse_ease": SparseEASE,
    "rp3beta": RP3Beta,
    "itemknn": ItemKNN,
    "transitions": Transitions,
    "ials": IALS,
    "attributes": Attributes,
    "popularity": Popularity,
}


class Member(BaseModel, frozen=True, extra="forbid"):
    model: str
    weight: float
    options: dict[str, Any] = {}

    @field_validator("model")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in MEMBERS:
            raise ConfigError(f"a blend cannot hold {name!r}; choose from: {', '.join(MEMBERS)}")
        return name


class BlendConfig(ModelConfig, frozen=True):
    # Each with its model, its weight and its options.
    members: tuple[Member, ...] = Field(
        (Member(model="chebycf", weight=1.0), Member(model="sparse_ease", weight=0.5)), min_length=1
    )


class Blend(Model):
    """Scores are `sum_p weight_p * standardised(scores_p)`: each member's scores of all items for
    one user, less their mean, over their standard deviation.

    Closed forms are solved and members with parameters are trained, with the sum of their losses. A
    new user's history goes to every member.
    """

    Config = BlendConfig
    config: BlendConfig
    losses = ("bpr", "softmax", "bsl")  # each member has other scores, so other thresholds

    def __init__(self, graph: BipartiteGraph, config: BlendConfig) -> None:
        super().__init__(graph, config)
        self.members: Sequence[Model] = nn.ModuleList(  # type: ignore[assignment]
            build_member(graph, member) for member in config.members
        )
        self.rows = {
            f"members.{index}.{name}": kind
            for index, member in enumerate(self.members)
            for name, kind in member.rows.items()
        }

    @classmethod
    def solved(cls, config: ModelConfig | None = None) -> bool:
        if not isinstance(config, BlendConfig):
            return False
        return all(MEMBERS[member.model].solved() for member in config.members)

    @property
    def _trained(self) -> list[Model]:
        return [member for member in self.members if not member.solved(member.config)]

    def bytes_to_fit(self) -> float:
        return max(member.bytes_to_fit() for member in self.members)  # one after another

    def solve_(self, seed: int) -> None:
        for member in self.members:
            member.solve_(seed)

    def draw_(self, seed: int) -> None:
        for member in self.members:
            member.draw_(seed)

    def fitted_state(self) -> dict[str, Tensor]:
        return {
            f"members.{index}.{name}": value
            for index, member in enumerate(self.members)
            for name, value in member.fitted_state().items()
        }

    def restore_(self, state: Mapping[str, Tensor]) -> None:
        for index, member in enumerate(self.members):
            prefix = f"members.{index}."
            member.restore_(
                {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            )

    def scorer(self) -> BlendScorer:
        weights = [member.weight for member in self.config.members]
        return BlendScorer([member.scorer() for member in self.members], weights)

    def loss(self, batch: Batch, loss: Loss) -> Tensor:
        return torch.stack([member.loss(batch, loss) for member in self._trained]).sum()

    def add_gradients_(self, batch: ChunkedBatch, loss: Loss) -> float:
        trained = self._trained
        # Chunks are drawn once and read by every member: a second draw would be another batch.
        copies = tee(batch.chunks, len(trained))
        return sum(
            member.add_gradients_(ChunkedBatch(batch.rows, copy), loss)
            for member, copy in zip(trained, copies, strict=True)
        )

    def parameter_groups(self, config: TrainConfig) -> dict[str, ParameterGroup]:
        return {
            f"{index}.{name}": group
            for index, member in enumerate(self.members)
            if not member.solved(member.config)
            for name, group in member.parameter_groups(config).items()
        }

    def take_learned_from_(self, other: Self) -> None:
        for member, theirs in zip(self.members, other.members, strict=True):
            member.take_learned_from_(theirs)

    @property
    def lesson_epochs(self) -> int:
        return max(member.lesson_epochs for member in self.members)

    def held_out_loss(self, held_out: Interactions, random: np.random.Generator) -> Tensor:
        learning = [member for member in self.members if member.lesson_epochs]
        return torch.stack([member.held_out_loss(held_out, random) for member in learning]).sum()

    def starts_again_(self, epoch: int, merit: float) -> bool:
        # Each is asked.
        return any([member.starts_again_(epoch, merit) for member in self.members])

    def extracted_times(self) -> list[float]:
        return [time for member in self.members for time in member.extracted_times()]

    def before_step_(self, progress: float, seed: int) -> None:
        for member in self.members:
            member.before_step_(progress, seed)

    def after_step_(self) -> None:
        for member in self.members:
            member.after_step_()


def build_member(graph: BipartiteGraph, member: Member) -> Model:
    kind = MEMBERS[member.model]
    return kind(graph, validated(kind.Config, member.options, f"the blend's {member.model!r}"))
