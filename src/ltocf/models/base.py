"""The contract of every model and of its cheap half, the scorer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol

import torch
from pydantic import BaseModel
from scipy.sparse import csr_array
from torch import Tensor, nn

from ltocf.batches.triples import Batch, Scheme, TripleBatches
from ltocf.config import LossConfig
from ltocf.data.interactions import Rows
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph


class Scorer(ABC):
    """The cheap map from users to the scores of every item; the expensive part is behind it."""

    @abstractmethod
    def __call__(self, users: Rows) -> Tensor:
        """Scores of all items for known users. (len(users), n_items)"""

    @abstractmethod
    def from_history(self, histories: csr_array) -> Tensor:
        """Scores of all items for anybody, from his history (see recency.py). (rows, n_items)"""


class Batches(Protocol):
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Batch]: ...


class ModelConfig(BaseModel, frozen=True, extra="forbid"):
    """`[model]` in a config file, without its name."""


class Model(nn.Module, ABC):
    """A model knows its training interactions through the graph and scores every item."""

    Config: ClassVar[type[ModelConfig]]
    trains_on_gpu: ClassVar[bool] = False

    def __init__(self, graph: BipartiteGraph, config: ModelConfig) -> None:
        super().__init__()
        self.graph = graph
        self.progress, self.noise = 0.0, torch.Generator()  # as before_step_() was told

    @abstractmethod
    def scorer(self) -> Scorer:
        """Do the expensive part once, without gradients."""

    def initialise_(self, seed: int) -> None:
        """Draw the parameters; for a closed form, compute what it needs."""

    def start_from_(self, weights: Mapping[str, Tensor]) -> None:
        """Take over the vectors of users and items, `weight`, of another model of these data."""
        own, theirs = dict(self.named_parameters()).get("weight"), weights.get("weight")
        if own is None:
            raise ConfigError(f"init: {type(self).__name__} has no vectors to start from others'")
        if theirs is None or theirs.shape != own.shape:
            found = "none" if theirs is None else f"some of dim {theirs.shape[1]}"
            raise ConfigError(
                f"init: needs a run with vectors of dim {own.shape[1]}, found {found}"
            )
        with torch.no_grad():
            own.copy_(theirs)

    def batches(
        self, loss: LossConfig, *, batch_size: int, scheme: Scheme, seed: int, epoch: int
    ) -> Batches:
        """One epoch of what `loss` takes."""
        return TripleBatches(
            self.graph.interactions,
            batch_size=batch_size,
            negatives=loss.negatives,
            seed=seed,
            epoch=epoch,
            scheme=scheme,
        )

    def loss(self, batch: Batch, loss: LossConfig) -> Tensor:
        """The mean loss of a batch. A closed form has none and is not iterated."""
        raise ConfigError(f"{type(self).__name__} is a closed form: it has no loss to train with")

    def time_parameters(self) -> list[nn.Parameter]:
        """Parameters that train with the time learning rate, in turn with the others."""
        return []

    def extracted_times(self) -> list[float]:
        """For the history: when an ODE's states are read, if it is one."""
        return []

    def before_step_(self, progress: float, seed: int) -> None:
        """Take the share of training that is done and a seed for what the loss draws, such as
        dropout; a resumed run is told the same."""
        self.progress = progress
        self.noise.manual_seed(seed)

    def after_step_(self) -> None:
        """Restore what an optimiser step may have broken."""
