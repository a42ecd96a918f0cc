"""LT-OCF: embeddings evolve by an ODE on the graph, read at times that are learned."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from ltocf.config import TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.filters.chebyshev import fit_response
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import ParameterGroup, Response, State
from ltocf.models.filter import FilterConfig, FilterModel
from ltocf.models.times_lesson import EPOCHS, TimesLesson
from ltocf.ode.reference import propagate, reference_method
from ltocf.ode.solver import Connection, Solver
from ltocf.ode.solvers import find_solver
from ltocf.ode.times import Gaps, TimePoints, Times, evenly

# With n times as many pairs, learned times shrink by n ** (1/3); see `depth_factor`.
DEPTH_BY_PAIRS = 1 / 3
# Finer than `tolerance`, since states are exported for their own sake and not only ranked by.
STATE_TOLERANCE = 1e-6
STIFFEST = -2.0  # the smallest eigenvalue of A - I, as those of A lie in [-1, 1]


class LTOCFConfig(FilterConfig, frozen=True):
    # The response at eigenvalue 1 for K = 5. Fixing it makes the learning rate and l2 mean the same
    # at any depth.
    scale: Annotated[float, Field(gt=0)] | Literal["natural"] = 12.7
    solver: str = "rk4"  # euler, midpoint, rk4, adams_moulton, dormand_prince, exact, ...
    end_time: float = Field(4.0, gt=0)  # K in the paper
    time_points: int = Field(3, ge=0)  # T in the paper
    times: tuple[float, ...] | None = None  # the T inner times; evenly spaced unless given
    # "held-out": times and end time learn on held-out pairs, before the training proper
    # (docs/any-data.md). "training": the times learn on the training pairs, as in the paper.
    learn_times: Literal["held-out", "training", False] = "held-out"
    time_learning_rate: float = Field(1e-2, gt=0)  # with learn_times = "training"
    # Whether times and embeddings take turns, or both learn in every step.
    time_updates: Literal["alternate", "joint"] = "alternate"
    time_every: int = Field(10, ge=1)  # alternate: steps of the embeddings per step of the times
    connection: Connection = "linear"  # the paper's published numbers use it
    operator: Literal["adjacency", "laplacian"] = "adjacency"  # dE/dt = A E, or (A - I) E
    weights: Literal["equal", "learnable"] | tuple[float, ...] = "equal"  # of the T + 2 states
    steps_per_interval: int | None = Field(None, ge=1)  # of a fixed-step solver; see `solver_of`
    step_size: float | None = Field(None, gt=0)  # instead of a number of steps
    rtol: float = Field(1e-7, gt=0)  # of an adaptive solver
    atol: float = Field(1e-9, gt=0)  # of an adaptive solver
    # "spectral" solves the ODE for the eigenvalues and filters the embeddings by the result; the
    # others run torchdiffeq on the embeddings themselves. All give the same embeddings.
    propagation: Literal["spectral", "reference", "adjoint"] = "spectral"
    # How closely a polynomial approximates the response, relative to the response at each
    # eigenvalue. A finer one costs more sparse products and ranks no better.
    tolerance: float = Field(3e-2, ge=1e-13)

    @field_validator("learn_times", mode="before")
    @classmethod
    def _as_published(cls, value: object) -> object:
        return "training" if value is True else value  # learn_times = true means: as in the paper

    @model_validator(mode="after")
    def _check(self) -> LTOCFConfig:
        if self.steps_per_interval is not None and self.step_size is not None:
            raise ConfigError(
                f"give either steps_per_interval={self.steps_per_interval!r} or "
                f"step_size={self.step_size!r}, not both"
            )
        solver = solver_of(self)
        if self.propagation != "spectral":
            reference_method(solver)
            if self.recency:
                raise ConfigError(
                    f"recency={self.recency!r} needs propagation='spectral', "
                    f"not {self.propagation!r}"
                )
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
    """The solver a config asks for; by default it takes one step per interval, as published."""
    # The linear connection restarts the solver in each interval, so a multi-step solver needs
    # enough steps in each to build up its history.
    starting = find_solver(config.solver).starting_steps if config.connection == "linear" else 0
    return find_solver(
        config.solver,
        steps=config.steps_per_interval or (starting + 2 if starting else 1),
        step_size=config.step_size,
        rtol=config.rtol,
        atol=config.atol,
    )


def depth_factor(learned_on: Interactions, used_on: Interactions) -> float:
    """The factor to multiply times by that were learned on fewer pairs than they are used on. It is
    below 1: the more pairs there are, the less smoothing they need (docs/any-data.md)."""
    return float((len(learned_on) / max(len(used_on), 1)) ** DEPTH_BY_PAIRS)


class LTOCF(FilterModel):
    """Choi, Jeon and Park, "LT-OCF: Learnable-Time ODE-based Collaborative Filtering", CIKM 2021.

    dE/dt = A E from time 0 to K; the final embeddings are the weighted sum of the states at 0, at
    the T learned times and at K. Deviations from the authors' code: the solver runs on the spectrum
    instead of the embeddings, to the same effect (docs/method.md); the learned times are saved;
    the end time is a setting; multi-step solvers keep their history.

    With `learn_times = "training"` the times learn on the training pairs, as in the paper. They
    then fit the same pairs as the embeddings, which takes less smoothing than generalising does.

    By default the times, and the end time K with them, learn on **held-out pairs** during the first
    two epochs of a training. Every second step of the embeddings on training pairs is followed by a
    step of the times on held-out pairs, whose loss asks that held-out items score above random
    ones. The response keeps its size (`scale`), so the loss cannot be lowered by larger scores.
    Embeddings that were trained with one response do not suit another, so training then restarts
    from scratch with the times found. This repeats until the times settle; the last restart trains
    with those. Times that grew beyond a limit are used only if they validate better than the
    initial times (`TimesLesson`).
    """

    Config = LTOCFConfig
    config: LTOCFConfig

    def __init__(self, graph: BipartiteGraph, config: LTOCFConfig) -> None:
        super().__init__(graph, config)
        self.solver = solver_of(config)
        self.shift = 1 if config.operator == "laplacian" else 0  # dE/dt = (A - shift) E
        even = evenly(config.time_points, config.end_time)
        inner, end = even if config.times is None else config.times, config.end_time
        on_held_out, learn = config.learn_times == "held-out", config.learn_times == "training"
        self.times: Times = Gaps(inner, end) if on_held_out else TimePoints(inner, end, learn=learn)
        self.lesson = TimesLesson(self.times) if on_held_out else None
        n = config.inner_times
        start = config.weights if isinstance(config.weights, tuple) else [1 / (n + 2)] * (n + 2)
        self.state_weights = nn.Parameter(
            torch.tensor(start, dtype=torch.float64), requires_grad=config.weights == "learnable"
        )

    def natural_response(self, x: Tensor) -> Tensor:
        """The weighted sum of the solver's states for eigenvalue x of A, before `scale`."""
        times = self.times()
        rate = x.to(times) - self.shift
        solver = self.stable_solver(times)
        return self.state_weights @ solver.states(rate, times, self.config.connection)

    def stable_solver(self, times: Tensor) -> Solver:
        """The solver, with steps short enough to be stable. Heat diffusion, A - I, only decays; but
        an explicit solver with long steps makes the fastest-decaying components grow."""
        config = self.config
        if not self.shift:
            return self.solver
        if config.steps_per_interval is None and config.step_size is None:
            return self.solver.stabilised(STIFFEST, times)
        if not self.solver.is_stable(STIFFEST, times):
            needed = self.solver.stabilised(STIFFEST, times).steps
            raise ConfigError(
                f"operator='laplacian' is unstable with solver={config.solver!r} and steps this "
                f"long; set steps_per_interval={needed}, or leave it out"
            )
        return self.solver

    def natural_coefficients(self) -> Tensor:
        return fit_response(self.natural_response, self.config.tolerance)

    @torch.no_grad()
    def states(self) -> list[State]:
        """E at time 0, at the T times and at the end; with the linear connection, the increments.
        Their weighted sum is the final embeddings."""
        times, solver = self.times(), self.stable_solver(self.times())
        factor = float(self.factor(self.natural_response(torch.ones(1, dtype=torch.float64))))
        found = []
        for place, (time, weight) in enumerate(zip(times, self.state_weights, strict=True)):
            # `place` is bound as a default, since a closure would see the loop's last value.
            def response(x: Tensor, place: int = place) -> Tensor:
                rate = x.to(times) - self.shift
                return solver.states(rate, times, self.config.connection)[place]

            vectors = self.filtered(fit_response(response, STATE_TOLERANCE))
            found.append(State(float(time), float(weight) * factor, vectors))
        return found

    @property
    def undecided(self) -> tuple[str, ...]:
        spectral = self.config.propagation == "spectral"
        return tuple(name for name in super().undecided if spectral or name != "recency")

    @property
    def splits_columns(self) -> bool:
        return self.config.propagation == "spectral"

    def embeddings(self) -> Tensor:
        if self.config.propagation == "spectral":
            return super().embeddings()
        one = torch.ones(1, dtype=torch.float64, device=self.weight.device)
        final = propagate(
            lambda E: self.whole @ E - self.shift * E,
            self.initial(),
            self.times(),
            self.state_weights * self.factor(self.natural_response(one)),
            solver=self.stable_solver(self.times()),
            connection=self.config.connection,
            adjoint=self.config.propagation == "adjoint",
        )
        return self.without_tags(final)

    def responses(self) -> dict[str, Response]:
        return {
            "before training": LTOCF(self.graph, self.config).response,
            "after training": self.response,
        }

    def parameter_groups(self, config: TrainConfig) -> dict[str, ParameterGroup]:
        """As in the paper's algorithm 1: steps of the embeddings with the times fixed, then a step
        of the times."""
        apart = {id(p) for part in (self.times, self.lesson) if part for p in part.parameters()}
        others = [p for p in self.parameters() if p.requires_grad and id(p) not in apart]
        weights = ParameterGroup(others, self.learning_rate(config))
        if self.lesson is not None:
            return {"weights": weights} | self.lesson.groups(self.times)
        if self.config.learn_times is False:
            return {"weights": weights}
        times = ParameterGroup(list(self.times.parameters()), self.config.time_learning_rate)
        cycle = self.config.time_every + 1
        if self.config.time_updates == "alternate":
            weights = weights._replace(active=lambda step: step % cycle != cycle - 1)
            times = times._replace(active=lambda step: step % cycle == cycle - 1)
        return {"weights": weights, "times": times}

    @property
    def lesson_epochs(self) -> int:
        return 0 if self.lesson is None else EPOCHS

    def held_out_loss(self, held_out: Interactions, random: np.random.Generator) -> Tensor:
        assert self.lesson is not None
        return self.lesson.loss(
            self.embeddings(), self.graph.n_users, held_out, random, self.columns
        )

    def starts_again_(self, epoch: int, merit: float) -> bool:
        return self.lesson is not None and epoch == EPOCHS and self.lesson.end_(self.times, merit)

    def take_learned_from_(self, other: Self) -> None:
        super().take_learned_from_(other)
        # Times that still have their initial values were never learned, and are not stretched.
        learned = not torch.equal(other.times(), self.times())
        self.times.move_to_(other.times())
        if learned and self.config.learn_times == "held-out":
            pairs = other.graph.interactions, self.graph.interactions
            self.times.stretch_(depth_factor(*pairs))

    def after_step_(self) -> None:
        self.times.project_()

    def extracted_times(self) -> list[float]:
        times: list[float] = self.times().tolist()
        return times[1:-1]
