"""Blend: a weighted sum of what several models say about the same user, each on its own scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pydantic import BaseModel, Field, field_validator
from scipy.sparse import csr_array
from torch import Tensor, nn

from ltocf.batches.triples import Batch
from ltocf.config import LossConfig, validated
from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, ModelConfig, Scorer
from ltocf.models.bspm import BSPM
from ltocf.models.chebycf import ChebyCF
from ltocf.models.ease import EASE
from ltocf.models.gfcf import GFCF
from ltocf.models.itemknn import ItemKNN
from ltocf.models.lightgcn import LightGCN
from ltocf.models.ltocf import LTOCF
from ltocf.models.rp3beta import RP3Beta
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

    def __init__(self, graph: BipartiteGraph, config: BlendConfig) -> None:
        super().__init__(graph, config)
        self.weights = [part.weight for part in config.parts]
        self.parts: Sequence[Model] = nn.ModuleList(  # type: ignore[assignment]
            build_part(graph, part) for part in config.parts
        )

    def initialise_(self, seed: int) -> None:
        for part in self.parts:
            part.initialise_(seed)

    def scorer(self) -> Scorer:
        return BlendScorer([part.scorer() for part in self.parts], self.weights)

    def loss(self, batch: Batch, loss: LossConfig) -> Tensor:
        trained = [part for part in self.parts if list(part.parameters())]
        return torch.stack([part.loss(batch, loss) for part in trained]).sum()

    def time_parameters(self) -> list[nn.Parameter]:
        return [parameter for part in self.parts for parameter in part.time_parameters()]

    def extracted_times(self) -> list[float]:
        return [time for part in self.parts for time in part.extracted_times()]

    def before_step_(self, progress: float, seed: int) -> None:
        for part in self.parts:
            part.before_step_(progress, seed)

    def after_step_(self) -> None:
        for part in self.parts:
            part.after_step_()

    def load_state_dict(self, state: dict[str, Tensor], *args: object, **kwargs: object) -> object:  # type: ignore[override]
        # A closed form makes its buffers as it loads, which torch's walk over the parts would not.
        for index, part in enumerate(self.parts):
            prefix = f"parts.{index}."
            part.load_state_dict(
                {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            )
        return None


class BlendScorer(Scorer):
    def __init__(self, scorers: Sequence[Scorer], weights: Sequence[float]) -> None:
        self.scorers, self.weights = scorers, weights

    def __call__(self, users: Rows) -> Tensor:
        return self._combine([scorer(users) for scorer in self.scorers])

    def from_history(self, histories: csr_array) -> Tensor:
        return self._combine([scorer.from_history(histories) for scorer in self.scorers])

    def _combine(self, scores: Sequence[Tensor]) -> Tensor:
        total = torch.zeros_like(scores[0])
        for weight, part in zip(self.weights, scores, strict=True):
            total += weight * standardise(part)
        return total


def standardise(scores: Tensor) -> Tensor:
    """Each row less its mean, over its standard deviation; a constant row becomes zeros."""
    spread, mean = torch.std_mean(scores, dim=1, keepdim=True, correction=0)
    return (scores - mean) / spread.clamp(min=1e-12)


def build_part(graph: BipartiteGraph, part: Part) -> Model:
    kind = PARTS[part.model]
    return kind(graph, validated(kind.Config, part.options, f"the blend's {part.model!r}"))
