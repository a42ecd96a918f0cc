"""The contract of every model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from ltocf.batches.ahead import Batch, Batches, ChunkedBatch
from ltocf.batches.triples import DrawBy, TripleBatches
from ltocf.config import Loss, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.progress import Progress, silent
from ltocf.scorers.dot import DotScorer
from ltocf.scorers.scorer import Scorer

Response = Callable[[Tensor], Tensor]  # of the eigenvalues of A


Rows = Literal["users", "items", "nodes"]  # nodes are the users, then the items


class ParameterGroup(NamedTuple):
    """Parameters that share an optimiser, and the steps that they take part in.

    Those that learn `on_held_out` pairs have steps of their own, after those of the others, by
    the model's `held_out_loss`. They do so in its first `lesson_epochs`, at a rate that falls.
    """

    parameters: list[nn.Parameter]
    learning_rate: float
    active: Callable[[int], bool] = lambda step: True
    on_held_out: bool = False


class ModelConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """`[model]` in a config file, without its name."""


class Model(nn.Module, ABC):
    """A model knows its training interactions through the graph and scores every item.

    It is *trained*, its parameters by gradients of a loss, or *solved*, in closed form by
    `solve_`, and says which.
    """

    Config: ClassVar[type[ModelConfig]]
    losses: ClassVar[tuple[str, ...]] = ("bpr", "softmax", "bsl")  # that it can be trained with
    solved: ClassVar[bool] = False  # in closed form; else there may be something to train
    trains_on_gpu: ClassVar[bool] = False
    # What the rows of a tensor of its state stand for, so that an update can move them: sizes do
    # not tell, as there may be as many users as items.
    rows: Mapping[str, Rows] = {"weight": "nodes"}

    def __init__(self, graph: BipartiteGraph, config: ModelConfig) -> None:
        super().__init__()
        self.graph, self.config = graph, config
        self.people = graph.interactions  # of users alone, where other nodes count as users
        self.report: Progress = silent  # to be called by whatever takes long; it may raise
        self.progress, self.noise = 0.0, torch.Generator()  # as before_step_() was told

    @classmethod
    def trains(cls, config: ModelConfig) -> bool:
        """Whether a model of these settings has anything to train."""
        return not cls.solved

    @property
    def trained(self) -> bool:
        """Whether there is anything to train; the rest is solved."""
        return not self.solved

    @abstractmethod
    def scorer(self) -> Scorer:
        """Do the expensive part once, without gradients."""

    def initialise_(self, seed: int) -> None:
        """Solve what is solved and draw what is trained."""
        self.solve_(seed)
        self.draw_(seed)

    def solve_(self, seed: int) -> None:
        """Compute what a closed form needs."""

    def draw_(self, seed: int) -> None:
        """Draw the parameters that training starts from."""

    def bytes_to_fit(self) -> float:
        """About how much memory fitting takes beside the data, where that can be foreseen.

        Of each parameter: itself, its gradient, Adam's two moments, the best so far, the last while
        another is validated, the final embeddings, and three tables of a filter.
        """
        return 10.0 * sum(p.numel() * p.element_size() for p in self.parameters())

    def fitted_state(self) -> dict[str, Tensor]:
        """Everything that a fitted model is, to be saved; `restore_` takes it."""
        return self.state_dict()

    def restore_(self, state: Mapping[str, Tensor]) -> None:
        """Become the model whose `fitted_state` this is; a KeyError or RuntimeError if it is of
        another kind or size."""
        self.load_state_dict(state)

    def start_from_(self, weights: Mapping[str, Tensor]) -> None:
        """Take over the vectors of users and items, `weight`, of another model of these data."""
        own, theirs = dict(self.named_parameters()).get("weight"), weights.get("weight")
        if own is None:
            raise ConfigError(
                f"start_from: {type(self).__name__} has no vectors to start from others'"
            )
        if theirs is None or theirs.shape != own.shape:
            found = "none" if theirs is None else f"some of dim {theirs.shape[1]}"
            raise ConfigError(
                f"start_from: needs a run with vectors of dim {own.shape[1]}, found {found}"
            )
        with torch.no_grad():
            own.copy_(theirs)

    def negatives(self, loss: Loss) -> int:
        """How many the loss takes; of these data, where it leaves that to them."""
        return loss.negatives_for(self.graph.interactions.density)

    def l2(self, loss: Loss) -> float:
        """On the vectors of a batch; as these data ask for, where the loss leaves that to them."""
        return loss.l2_for(self.graph.interactions.pairs_per_user)

    def take_learned_from_(self, other: Self) -> None:
        """Take over from a model of some of these pairs what it learned about all of them, such as
        times; the parameters are drawn and trained anew."""

    def weighing_popularity(self) -> DotScorer | None:
        """What to weigh popularity beside on validation, if the model leaves its weight to that."""
        return None

    def weigh_popularity_(self, weight: float) -> None:
        """Add popularity to the scores from now on, as `DotScorer.with_popularity` does."""
        raise AssertionError(f"{type(self).__name__} does not weigh popularity")

    @property
    def lesson_epochs(self) -> int:
        """In how many of the first epochs some parameters learn on held-out pairs."""
        return 0

    def held_out_loss(self, held_out: Interactions, random: np.random.Generator) -> Tensor:
        """What those parameters minimise, on some of the held-out pairs."""
        raise AssertionError(f"{type(self).__name__} learns nothing on held-out pairs")

    def starts_again_(self, epoch: int) -> bool:
        """Whether training has to begin anew after this epoch, since what was learned on held-out
        pairs has moved too far for the parameters to follow."""
        return False

    def batches(
        self, loss: Loss, *, batch_size: int, draw_by: DrawBy, seed: int, epoch: int
    ) -> Batches:
        """One epoch of what `loss` takes."""
        return TripleBatches(
            self.graph.interactions,
            batch_size=batch_size,
            negatives=1 if loss.sampling == "shared" else self.negatives(loss),
            seed=seed,
            epoch=epoch,
            draw_by=draw_by,
        )

    def loss(self, batch: Batch, loss: Loss) -> Tensor:
        """The mean loss of a batch, or of a part of one."""
        raise AssertionError(f"{type(self).__name__} is solved, not trained")

    def add_gradients_(self, batch: ChunkedBatch, loss: Loss) -> float:
        """Add the gradient of the mean loss of a batch to the parameters'; the mean loss.

        Memory must not grow with the size of the batch."""
        total = 0.0
        for part in batch.chunks:
            share = self.loss(part, loss) * (len(part.users) / batch.rows)
            share.backward()  # type: ignore[no-untyped-call]
            total += float(share.detach())
        return total

    def parameter_groups(self, config: TrainConfig) -> dict[str, ParameterGroup]:
        """What is trained how, by name."""
        learned = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return {"weights": ParameterGroup(learned, self.learning_rate(config))}

    def learning_rate(self, config: TrainConfig) -> float:
        return config.learning_rate_for(self.graph.interactions.pairs_per_node)

    def extracted_times(self) -> list[float]:
        """For the history: when an ODE's states are read, if it is one."""
        return []

    def responses(self) -> dict[str, Response]:
        """What the model makes of each eigenvalue of the graph, if it is a polynomial of it; before
        and after training where the two differ."""
        raise ConfigError(
            f"{type(self).__name__} is no polynomial of the graph: only ltocf and lightgcn have a "
            "response to draw"
        )

    @property
    def splits_columns(self) -> bool:
        """Whether several processes can train it, each with its columns of the embeddings."""
        return False

    def check_columns(self) -> None:
        """A ConfigError if there are fewer columns than processes."""

    def split_columns_(self) -> None:
        """Keep this process's columns, to train them beside the other processes."""
        raise AssertionError(f"{type(self).__name__} trains in one process")

    def join_columns_(self) -> None:
        """Become whole again, at every process."""

    def before_step_(self, progress: float, seed: int) -> None:
        """Take the share of training that is done and a seed for what the loss draws, such as
        dropout; a resumed run is told the same."""
        self.progress = progress
        self.noise.manual_seed(seed)

    def after_step_(self) -> None:
        """Restore what an optimiser step may have broken."""
