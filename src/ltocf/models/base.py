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
from ltocf.distributed import Columns
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.progress import Progress, silent
from ltocf.scorers.scorer import Scorer

Response = Callable[[Tensor], Tensor]  # a function of the eigenvalues of A
PairScorer = Callable[[Tensor, Tensor], Tensor]  # of users (n,) and items (n, m); (n, m)


Rows = Literal["users", "items", "nodes"]  # nodes are the users, then the items


class ParameterGroup(NamedTuple):
    """Parameters that share an optimiser, and the steps that they take part in.

    Groups that learn `on_held_out` pairs take separate steps, after those of the other groups, on
    the model's `held_out_loss`. They learn in its first `lesson_epochs` only, at a falling rate.
    """

    parameters: list[nn.Parameter]
    learning_rate: float
    active: Callable[[int], bool] = lambda step: True
    on_held_out: bool = False


class State(NamedTuple):
    """Embeddings at a time of an ODE, and their weight in the final ones."""

    time: float
    weight: float
    vectors: Tensor  # (n_nodes, dim)


class ModelConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """`[model]` in a config file, without its name."""


class Model(nn.Module, ABC):
    """A model knows its training interactions through the graph and scores every item.

    It is either *trained* by gradients of a loss, or *solved* in closed form by `solve_`; `solved`
    tells which.
    """

    Config: ClassVar[type[ModelConfig]]
    # That it can be trained with.
    losses: ClassVar[tuple[str, ...]] = ("bpr", "softmax", "bsl", "slatk")
    trains_on_gpu: ClassVar[bool] = False
    # What the rows of each tensor of its state stand for, so that an update can renumber them. The
    # sizes do not tell, as there may be as many users as items.
    rows: Mapping[str, Rows] = {"weight": "nodes"}

    def __init__(self, graph: BipartiteGraph, config: ModelConfig) -> None:
        super().__init__()
        self.graph, self.config = graph, config
        # The pairs of real users: some models add nodes, such as tags, that count as users.
        self.people = graph.interactions
        self.report: Progress = silent  # whatever takes long must call it; it may raise
        self.progress, self.noise = 0.0, torch.Generator()  # set by before_step_()
        self.columns = Columns()  # how several processes share the columns, if they can

    @classmethod
    def solved(cls, config: ModelConfig | None = None) -> bool:
        """Whether a model with these settings is solved in closed form, with nothing to train.
        Without settings, whether every model of this class is."""
        return False

    @abstractmethod
    def scorer(self) -> Scorer:
        """Do the expensive part once, without gradients; the scorer then answers cheaply."""

    def initialise_(self, seed: int) -> None:
        """Solve the closed forms and draw the initial parameters of the rest."""
        self.solve_(seed)
        self.draw_(seed)

    def solve_(self, seed: int) -> None:
        """Compute what a closed form needs."""

    def draw_(self, seed: int) -> None:
        """Draw the parameters that training starts from."""

    def bytes_to_fit(self) -> float:
        """An estimate of the memory that fitting takes besides the data.

        The factor 10 counts copies of the parameters: the values, their gradient, Adam's two
        moments, the best so far, the last ones while averages are validated, the final embeddings,
        and three tables of a filter.
        """
        return 10.0 * sum(p.numel() * p.element_size() for p in self.parameters())

    def fitted_state(self) -> dict[str, Tensor]:
        """Everything that a fitted model is, to be saved; `restore_` takes it."""
        return self.state_dict()

    def restore_(self, state: Mapping[str, Tensor]) -> None:
        """Become the model whose `fitted_state` this is. Raises KeyError or RuntimeError if that
        model has another kind or size."""
        self.load_state_dict(state)

    def start_from_(self, weights: Mapping[str, Tensor]) -> None:
        """Take over the vectors of users and items, `weight`, of another model of these data."""
        own, theirs = dict(self.named_parameters()).get("weight"), weights.get("weight")
        if own is None:
            raise ConfigError(
                f"start_from: {type(self).__name__} has no vectors, so it cannot take those of "
                "another run; leave start_from out"
            )
        if theirs is None or theirs.shape != own.shape:
            found = "none" if theirs is None else f"some of dim {theirs.shape[1]}"
            raise ConfigError(
                f"start_from: needs a run with vectors of dim {own.shape[1]}, found {found}"
            )
        with torch.no_grad():
            # In place: the optimiser may hold the parameter already.
            own.copy_(theirs)

    def negatives(self, loss: Loss) -> int:
        """How many negatives the loss takes; unless it is set, the data decide."""
        train = self.graph.interactions
        return loss.negatives_for(train.density, train.pairs_per_node)

    def l2(self, loss: Loss) -> float:
        """The penalty on a batch's vectors; unless it is set, the pairs per user decide."""
        return loss.l2_for(self.graph.interactions.pairs_per_user)

    def take_learned_from_(self, other: Self) -> None:
        """Take over what a model of fewer of these pairs learned that holds for all of them, such
        as times. The other parameters are drawn and trained from scratch."""

    @property
    def undecided(self) -> tuple[str, ...]:
        """The weights of its lists that validation is to choose once it is trained."""
        return ()

    def set_weight_(self, name: str, value: float) -> None:
        """Weigh lists by this value of one of the undecided from now on."""
        self.get_buffer(name).fill_(value)

    @property
    def lesson_epochs(self) -> int:
        """For how many epochs at the start some parameters learn on held-out pairs."""
        return 0

    def held_out_loss(self, held_out: Interactions, random: np.random.Generator) -> Tensor:
        """The loss that those parameters minimise, on a sample of the held-out pairs."""
        raise AssertionError(f"{type(self).__name__} learns nothing on held-out pairs")

    def starts_again_(self, epoch: int, merit: float) -> bool:
        """Whether training must restart from scratch after this epoch, because what was learned on
        held-out pairs has changed and the other parameters no longer suit it. `merit` is the
        validation metric, 0 if there is none."""
        return False

    def batches(
        self, loss: Loss, *, batch_size: int, draw_by: DrawBy, seed: int, epoch: int
    ) -> Batches:
        """The training triples of one epoch, as `loss` takes them."""
        return TripleBatches(
            self.graph.interactions,
            batch_size=batch_size,
            negatives=1 if loss.sampling == "shared" else self.negatives(loss),
            seed=seed,
            epoch=epoch,
            draw_by=draw_by,
        )

    def loss(self, batch: Batch, loss: Loss) -> Tensor:
        """The mean loss of a batch, or of a chunk of one."""
        raise AssertionError(f"{type(self).__name__} is solved, not trained")

    def pair_scorer(self) -> PairScorer:
        """Do the expensive part once; return the scores that the loss is of, without gradients."""
        raise AssertionError(f"{type(self).__name__} scores no pairs while it is trained")

    def add_gradients_(self, batch: ChunkedBatch, loss: Loss) -> float:
        """Add the gradient of a batch's mean loss to the parameters' gradients; return that loss.

        Memory must not grow with the size of the batch."""
        total = 0.0
        for chunk in batch.chunks:
            share = self.loss(chunk, loss) * (len(chunk.users) / batch.rows)
            share.backward()  # type: ignore[no-untyped-call]
            total += float(share.detach())
        return total

    def parameter_groups(self, config: TrainConfig) -> dict[str, ParameterGroup]:
        """The groups of parameters to train, by name."""
        learned = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return {"weights": ParameterGroup(learned, self.learning_rate(config))}

    def learning_rate(self, config: TrainConfig) -> float:
        return config.learning_rate_for(self.graph.interactions.pairs_per_node)

    def extracted_times(self) -> list[float]:
        """When the states of an ODE are read, for the history; empty for other models."""
        return []

    def states(self) -> list[State]:
        """The states whose weighted sum is the final embeddings, if the model is an ODE."""
        raise ConfigError(f"{type(self).__name__} has no states over time; only ltocf has them")

    def responses(self) -> dict[str, Response]:
        """The response, if the model is a polynomial of the graph; before and after training where
        the two differ."""
        raise ConfigError(
            f"{type(self).__name__} has no response to draw, since it is not a polynomial of the "
            "graph; only ltocf and lightgcn have one"
        )

    def before_step_(self, progress: float, seed: int) -> None:
        """Learn the share of training that is done, and a seed for what the loss draws, such as
        dropout. A resumed run gets the same values as an uninterrupted one."""
        self.progress = progress
        self.noise.manual_seed(seed)

    def after_step_(self) -> None:
        """Restore constraints on the parameters that an optimiser step may have violated."""
