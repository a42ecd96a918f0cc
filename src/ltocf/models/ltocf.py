"""LT-OCF: embeddings evolve by an ODE on the graph, read at times that are learned."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from ltocf.config import TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.filters.chebyshev import fit_response
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, ParameterGroup, Response
from ltocf.models.filter import FilterConfig, FilterModel
from ltocf.ode.reference import propagate, reference_method
from ltocf.ode.solvers import Connection, Solver
from ltocf.ode.times import TimePoints

DEPTH_BY_PAIRS = 1 / 3  # how times that are learned fall as the pairs grow


class LTOCFConfig(FilterConfig, frozen=True):
    # That of K = 5, so that learning rate and l2 mean the same for any depth.
    scale: Annotated[float, Field(gt=0)] | Literal["natural"] = 12.7
    solver: str = "rk4"  # euler, midpoint, rk4, adams_moulton, dormand_prince, exact, ...
    end_time: float = Field(4.0, gt=0)  # K in the paper
    time_points: int = Field(3, ge=0)  # T in the paper
    times: tuple[float, ...] | None = None  # the T inner times; evenly spaced unless given
    # On what: held-out pairs, the end time among them, before training (docs/any-data.md); or the
    # training pairs, as the paper has it.
    learn_times: Literal["held-out", "training", False] = "held-out"
    time_learning_rate: float = Field(1e-2, gt=0)  # on the training pairs
    time_updates: Literal["alternate", "joint"] = "alternate"  # with the embeddings'
    time_every: int = Field(10, ge=1)  # alternate: steps for the embeddings to one for the times
    connection: Connection = "linear"  # what the published numbers use
    operator: Literal["adjacency", "laplacian"] = "adjacency"  # dE/dt = A E, or (A - I) E
    weights: Literal["equal", "learnable"] | tuple[float, ...] = "equal"  # of the T + 2 states
    steps_per_interval: int | None = Field(None, ge=1)  # of a fixed-step solver; see `solver_of`
    step_size: float | None = Field(None, gt=0)  # instead of a number of steps
    rtol: float = Field(1e-7, gt=0)  # of an adaptive solver
    atol: float = Field(1e-9, gt=0)  # of an adaptive solver
    # By the response of the spectrum, or by torchdiffeq on the embeddings, to the same effect.
    propagation: Literal["spectral", "reference", "adjoint"] = "spectral"
    # Of the response, relative to its largest value: finer costs products and ranks no better.
    tolerance: float = Field(1e-2, ge=1e-13)

    @field_validator("learn_times", mode="before")
    @classmethod
    def _as_published(cls, value: object) -> object:
        return "training" if value is True else value

    @model_validator(mode="after")
    def _check(self) -> LTOCFConfig:
        if self.steps_per_interval is not None and self.step_size is not None:
            raise ConfigError(
                f"give either steps_per_interval={self.steps_per_interval!r} or "
                f"step_size={self.step_size!r}, not both"
            )
        if self.propagation != "spectral":
            reference_method(self.solver)
            if self.recency:
                raise ConfigError(
                    f"recency={self.recency!r} needs propagation='spectral', "
                    f"not {self.propagation!r}"
                )
        solver_of(self)
        if isinstance(self.weights, tuple) and len(self.weights) != self.inner_times + 2:
            raise ConfigError(
                f"weights={self.weights!r} must be {self.inner_times + 2} numbers: one for each of "
                f"the {self.inner_times} inner times, one for time 0 and one for end_time"
            )
        return self

    @property
    def inner_times(self) -> int:
        return self.time_points if self.times is None else len(self.times)


def solver_of(config: LTOCFConfig) -> Solver:
    """The solver a config asks for; one step an interval, as published, unless told otherwise."""
    # The linear connection restarts a multi-step solver in each interval: give it some history.
    restarts = config.solver == "adams_moulton" and config.connection == "linear"
    steps = config.steps_per_interval or (4 if restarts else 1)
    return Solver(config.solver, steps, config.step_size, config.rtol, config.atol)


def depth_factor(learned_on: Interactions, used_on: Interactions) -> float:
    """By what to stretch times that were learned on a part of the pairs: the more pairs there are,
    the less smoothing they need (docs/any-data.md)."""
    return float((len(learned_on) / max(len(used_on), 1)) ** DEPTH_BY_PAIRS)


class LTOCF(FilterModel):
    """Choi, Jeon and Park, "LT-OCF: Learnable-Time ODE-based Collaborative Filtering", CIKM 2021.

    dE/dt = A E from time 0 to K; the final embeddings are the weighted sum of the states at 0, at
    the T learned times and at K. Deviations from the authors' code: the solver runs on the spectrum
    instead of the embeddings, to the same effect (docs/method.md); the learned times are saved;
    the end time is a setting; multi-step solvers keep their history.
    """

    Config = LTOCFConfig
    config: LTOCFConfig

    def __init__(self, graph: BipartiteGraph, config: LTOCFConfig) -> None:
        super().__init__(graph, config)
        self.solver = solver_of(config)
        self.shift = 1 if config.operator == "laplacian" else 0  # dE/dt = (A - shift) E
        n, end, learn = config.inner_times, config.end_time, config.learn_times == "training"
        given = config.times
        self.times = (
            TimePoints.evenly(n, end, learn=learn)
            if given is None
            else TimePoints(given, end, learn=learn)
        )
        start = config.weights if isinstance(config.weights, tuple) else [1 / (n + 2)] * (n + 2)
        self.state_weights = nn.Parameter(
            torch.tensor(start, dtype=torch.float64), requires_grad=config.weights == "learnable"
        )

    def natural_response(self, x: Tensor) -> Tensor:
        """What the solver and the weights make of an eigenvalue x of A."""
        times = self.times()
        rate = x.to(times) - self.shift
        return self.state_weights @ self.solver.states(rate, times, self.config.connection)

    def natural_coefficients(self) -> Tensor:
        return fit_response(self.natural_response, self.config.tolerance)

    @property
    def splits_columns(self) -> bool:
        return self.config.propagation == "spectral"

    def embeddings(self) -> Tensor:
        if self.config.propagation == "spectral":
            return super().embeddings()
        one = torch.ones(1, dtype=torch.float64, device=self.weight.device)
        return propagate(
            lambda E: self.graph @ E - self.shift * E,
            self.weight,
            self.times(),
            self.state_weights * self.factor(self.natural_response(one)),
            solver=self.solver,
            connection=self.config.connection,
            adjoint=self.config.propagation == "adjoint",
        )

    def responses(self) -> dict[str, Response]:
        return {
            "before training": LTOCF(self.graph, self.config).response,
            "after training": self.response,
        }

    def parameter_groups(self, config: TrainConfig) -> dict[str, ParameterGroup]:
        """The paper's algorithm 1: the embeddings with the times fixed, then the times."""
        if self.config.learn_times != "training":
            return super().parameter_groups(config)
        others = [p for p in self.parameters() if p.requires_grad and p is not self.times.inner]
        rate, cycle = self.config.time_learning_rate, self.config.time_every + 1
        if self.config.time_updates == "joint":
            times = ParameterGroup([self.times.inner], rate)
            return {"weights": ParameterGroup(others, self.learning_rate(config)), "times": times}
        return {
            "weights": ParameterGroup(
                others, self.learning_rate(config), lambda step: step % cycle != cycle - 1
            ),
            "times": ParameterGroup(
                [self.times.inner], rate, lambda step: step % cycle == cycle - 1
            ),
        }

    def carry_(self, other: Model) -> None:
        assert isinstance(other, LTOCF)
        learned = not torch.equal(other.times(), self.times())
        self.times.load_state_dict(other.times.state_dict())
        if learned and self.config.learn_times == "held-out":
            pairs = other.graph.interactions, self.graph.interactions
            self.times.stretch_(depth_factor(*pairs))

    def after_step_(self) -> None:
        self.times.project_()

    def extracted_times(self) -> list[float]:
        return self.times.inner.tolist()
