"""Blend: a weighted sum of what several models say about the same user, each on its own scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import tee
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, Field, field_validator
from scipy.sparse import csr_array
from torch import Tensor, nn

from ltocf.batches.ahead import Batch, Parts
from ltocf.config import Loss, TrainConfig, validated
from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, ModelConfig, ParameterGroup
from ltocf.models.bspm import BSPM
from ltocf.models.chebycf import ChebyCF
from ltocf.models.ease import EASE
from ltocf.models.gfcf import GFCF
from ltocf.models.itemknn import ItemKNN
from ltocf.models.lightgcn import LightGCN
from ltocf.models.ltocf import LTOCF
from ltocf.models.rp3beta import RP3Beta
from ltocf.models.scorer import NOBODY, Scorer, Terms
from ltocf.models.sparse_ease import SparseEASE
from ltocf.models.turbocf import TurboCF

PARTS: dict[str, type[Model]] = {
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
}


class Part(BaseModel, frozen=True, extra="forbid"):
    model: str
    weight: float
    options: dict[str, Any] = {}

    @field_validator("model")
    @classmethod
    def _known(cls, name: str) -> str:
        name = {"sansa": "sparse_ease"}.get(name, name)  # its name before a renaming
        if name not in PARTS:
            raise ConfigError(f"a blend cannot hold {name!r}; choose from: {', '.join(PARTS)}")
        return name


class BlendConfig(ModelConfig, frozen=True):
    # Each with its model, its weight and its options.
    parts: tuple[Part, ...] = Field(
        (Part(model="chebycf", weight=1.0), Part(model="sparse_ease", weight=0.5)), min_length=1
    )


class Blend(Model):
    """Scores are `sum_p weight_p * standardised(scores_p)`: each part's scores of all items for one
    user, less their mean, over their standard deviation.

    Closed forms are solved and parts with parameters are trained, with the sum of their losses. A
    new user's history goes to every part.
    """

    Config = BlendConfig
    config: BlendConfig

    def __init__(self, graph: BipartiteGraph, config: BlendConfig) -> None:
        super().__init__(graph, config)
        self.parts: Sequence[Model] = nn.ModuleList(  # type: ignore[assignment]
            build_part(graph, part) for part in config.parts
        )

    @classmethod
    def trains(cls, config: ModelConfig) -> bool:
        assert isinstance(config, BlendConfig)
        return any(not PARTS[part.model].solved for part in config.parts)

    @property
    def trained(self) -> bool:
        return any(part.trained for part in self.parts)

    def bytes_to_fit(self) -> float:
        return max(part.bytes_to_fit() for part in self.parts)  # one after another

    def solve_(self, seed: int) -> None:
        for part in self.parts:
            part.solve_(seed)

    def draw_(self, seed: int) -> None:
        for part in self.parts:
            part.draw_(seed)

    def fitted_state(self) -> dict[str, Tensor]:
        return {
            f"parts.{index}.{name}": value
            for index, part in enumerate(self.parts)
            for name, value in part.fitted_state().items()
        }

    def restore_(self, state: Mapping[str, Tensor]) -> None:
        for index, part in enumerate(self.parts):
            prefix = f"parts.{index}."
            part.restore_(
                {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            )

    def scorer(self) -> Scorer:
        weights = [part.weight for part in self.config.parts]
        return BlendScorer([part.scorer() for part in self.parts], weights)

    def loss(self, batch: Batch, loss: Loss) -> Tensor:
        trained = [part for part in self.parts if part.trained]
        return torch.stack([part.loss(batch, loss) for part in trained]).sum()

    def add_gradients_(self, batch: Parts, loss: Loss) -> float:
        trained = [part for part in self.parts if part.trained]
        copies = tee(batch.parts, len(trained))
        return sum(
            part.add_gradients_(Parts(batch.rows, copy), loss)
            for part, copy in zip(trained, copies, strict=True)
        )

    def parameter_groups(self, config: TrainConfig) -> dict[str, ParameterGroup]:
        return {
            f"{index}.{name}": group
            for index, part in enumerate(self.parts)
            if part.trained
            for name, group in part.parameter_groups(config).items()
        }

    def carry_(self, other: Model) -> None:
        assert isinstance(other, Blend)
        for part, theirs in zip(self.parts, other.parts, strict=True):
            part.carry_(theirs)

    def extracted_times(self) -> list[float]:
        return [time for part in self.parts for time in part.extracted_times()]

    def before_step_(self, progress: float, seed: int) -> None:
        for part in self.parts:
            part.before_step_(progress, seed)

    def after_step_(self) -> None:
        for part in self.parts:
            part.after_step_()


class BlendScorer(Scorer):
    def __init__(self, scorers: Sequence[Scorer], weights: Sequence[float]) -> None:
        self.scorers, self.weights = scorers, weights

    def __call__(self, users: Rows) -> Tensor:
        return self._combine([scorer(users) for scorer in self.scorers])

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Tensor:
        return self._combine([scorer.from_history(histories, own) for scorer in self.scorers])

    def similar_items(self, items: Rows) -> Tensor:
        return self._combine([scorer.similar_items(items) for scorer in self.scorers])

    def similar_users(self, users: Rows) -> Tensor:
        return self._combine([scorer.similar_users(users) for scorer in self.scorers])

    def explain(self, readout: Tensor, history: csr_array, user: int = NOBODY) -> Terms:
        """A part's scores less their mean, over their spread, are a weighted sum of its scores."""
        own, terms = 0.0, np.zeros(history.nnz)
        for scorer, weight in zip(self.scorers, self.weights, strict=True):
            scores = scorer.from_history(history, np.array([user], dtype=np.int32))
            spread = scores.double().cpu().std(correction=0).clamp(min=1e-12)
            centred = (readout - readout.mean()) * (weight / spread)
            found = scorer.explain(centred, history, user)
            own, terms = own + found.own, terms + found.of_history
        return Terms(own, terms)

    def _combine(self, scores: Sequence[Tensor]) -> Tensor:
        total = torch.zeros_like(scores[0])
        for weight, part in zip(self.weights, scores, strict=True):
            total += weight * standardise(part.to(total))
        return total


def standardise(scores: Tensor) -> Tensor:
    """Each row less its mean, over its standard deviation; a constant row becomes zeros."""
    spread, mean = torch.std_mean(scores, dim=1, keepdim=True, correction=0)
    return (scores - mean) / spread.clamp(min=1e-12)


def build_part(graph: BipartiteGraph, part: Part) -> Model:
    kind = PARTS[part.model]
    return kind(graph, validated(kind.Config, part.options, f"the blend's {part.model!r}"))
