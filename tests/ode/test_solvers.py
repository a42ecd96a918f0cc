"""Solvers on y' = x y: orders of convergence, and implementations written another way."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
import torchdiffeq
from torch import Tensor
from torch.testing import assert_close

from ltocf.errors import ConfigError
from ltocf.ode import one_step
from ltocf.ode.library import METHODS
from ltocf.ode.solvers import SOLVERS, find_solver

OURS = ["euler", "midpoint", "rk4", "exact", "adams_moulton", "dormand_prince"]
X = torch.linspace(-1, 1, 9, dtype=torch.float64)


def times(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("name", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4), ("adams_moulton", 4)]
)
def test_halving_the_steps_divides_the_error_by_two_to_the_order(name: str, order: int) -> None:
    errors = [
        (find_solver(name, steps=n).states(X, times(0, 3), "residual")[-1] - (3 * X).exp())
        .abs()
        .max()
        for n in (32, 64)
    ]
    assert abs(torch.log2(errors[0] / errors[1]).item() - order) < 0.15


def test_dormand_prince_steps_are_of_order_five() -> None:
    errors = []
    for n in (64, 128):
        growth = one_step.dormand_prince(3 * X / n) ** n
        errors.append((growth - (3 * X).exp()).abs().max())
    assert abs(torch.log2(errors[0] / errors[1]).item() - 5) < 0.15


@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10])
def test_dormand_prince_keeps_its_tolerance_and_no_more(rtol: float) -> None:
    y = find_solver("dormand_prince", rtol=rtol, atol=rtol).states(X, times(0, 1.3, 4), "residual")
    error = ((y[-1] - (4 * X).exp()).abs() / (1 + (4 * X).exp())).max()
    assert rtol * 1e-3 < error < rtol * 20


def test_dormand_prince_refuses_a_tolerance_beyond_float64() -> None:
    with pytest.raises(ConfigError, match="rtol=1e-30"):
        find_solver("dormand_prince", rtol=1e-30, atol=1e-30).states(X, times(0, 4), "residual")


def adams_moulton_by_iteration(x: float, h: float, n: int) -> float:
    """The paper's equation, its implicit term found by fixed-point iteration, after RK4 steps."""
    y = [1.0]
    for _ in range(2):
        k1 = x * y[-1]
        k2 = x * (y[-1] + h / 2 * k1)
        k3 = x * (y[-1] + h / 2 * k2)
        k4 = x * (y[-1] + h * k3)
        y.append(y[-1] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    while len(y) <= n:
        known = y[-1] + h / 24 * (19 * x * y[-1] - 5 * x * y[-2] + x * y[-3])
        guess = y[-1]
        for _ in range(200):
            guess = known + h / 24 * 9 * x * guess
        y.append(guess)
    return y[n]


def test_adams_moulton_is_the_papers_equation() -> None:
    ours = find_solver("adams_moulton", steps=8).states(X, times(0, 4), "residual")[-1]
    theirs = [adams_moulton_by_iteration(x, 0.5, 8) for x in X.tolist()]
    assert_close(ours, times(*theirs), rtol=0, atol=1e-11)


def test_adams_moulton_keeps_its_history_from_one_interval_to_the_next() -> None:
    across = find_solver("adams_moulton").states(X, times(0, 1, 2, 3, 4), "residual")[-1]
    within = find_solver("adams_moulton", steps=4).states(X, times(0, 4), "residual")[-1]
    assert_close(across, within, rtol=0, atol=1e-13)
    assert (
        across - find_solver("rk4", steps=4).states(X, times(0, 4), "residual")[-1]
    ).abs().max() > 0.01


def test_adams_moulton_stays_of_order_four_on_unequal_steps() -> None:
    errors = []
    for n in (32, 64):
        grid = 3 * torch.linspace(0, 1, n + 1, dtype=torch.float64) ** 1.5
        y = find_solver("adams_moulton").states(X, grid, "residual")[-1]
        errors.append((y - (3 * X).exp()).abs().max())
    assert torch.log2(errors[0] / errors[1]).item() > 3.7


def test_adams_moulton_says_when_it_would_be_rk4_under_another_name() -> None:
    with pytest.raises(
        ConfigError, match="needs more than 2 steps there, not 1; set steps_per_interval=4"
    ):
        find_solver("adams_moulton").states(X, times(0, 1, 2), "linear")


def test_adams_moulton_refuses_a_step_past_its_pole() -> None:
    with pytest.raises(ConfigError, match="unstable with a step of 3"):
        find_solver("adams_moulton").states(X, times(0, 3, 6, 9), "residual")


def test_the_exact_solver_is_the_exponential() -> None:
    y = find_solver("exact").states(X, times(0, 0.7, 2), "residual")
    assert_close(y, torch.exp(times(0, 0.7, 2)[:, None] * X), rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "adams_moulton"])
def test_every_solver_feeds_increments_on_in_the_linear_connection(name: str) -> None:
    solver = find_solver(name, steps=2, rtol=1e-5, atol=1e-6)
    states = solver.states(X, times(0, 0.5, 1.75), "linear")
    first = solver.trajectory(X, torch.ones_like(X), times(0, 0.5))[-1] - 1
    second = first * (solver.trajectory(X, torch.ones_like(X), times(0.5, 1.75))[-1] - 1)
    assert_close(states, torch.stack([torch.ones_like(X), first, second]), rtol=0, atol=5e-3)


@pytest.mark.parametrize("name", [*OURS, "heun3", "explicit_adams", "dopri5"])
@pytest.mark.parametrize("connection", ["linear", "residual"])
def test_every_solver_is_differentiable_in_the_times(name: str, connection: str) -> None:
    solver = find_solver(name, steps=8, rtol=1e-6, atol=1e-7)

    def last_state(t: Tensor) -> Tensor:
        return solver.states(X, torch.cat([times(0), t]), connection)[-1].sum()  # type: ignore[arg-type]

    t = times(0.8, 2.1).requires_grad_()
    (gradient,) = torch.autograd.grad(last_state(t), t)
    step = 1e-3
    numeric = [
        (last_state(t.detach() + step * e) - last_state(t.detach() - step * e)) / (2 * step)
        for e in torch.eye(2, dtype=torch.float64)
    ]
    assert_close(gradient, torch.stack(numeric), rtol=2e-3, atol=2e-4)


def test_a_step_size_leaves_a_shorter_last_step() -> None:
    grid = find_solver("rk4", step_size=0.4).grid(times(0, 1, 1.5))
    assert_close(grid, times(0, 0.4, 0.8, 1, 1.4, 1.5))


def test_an_unknown_solver_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigError, match="unknown solver 'rk5'; choose one of: euler, midpoint"):
        find_solver("rk5")


def test_dormand_prince_is_the_published_polynomial() -> None:
    expected = [1, 1, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 600, 0]
    np.testing.assert_allclose(one_step.FIFTH, expected, rtol=0, atol=1e-15)


def test_torchdiffeq_has_every_method_that_is_named_and_no_other_with_gradients() -> None:
    with pytest.raises(ValueError, match="Must be one of") as refusal:
        torchdiffeq.odeint(lambda t, y: y, torch.ones(1), times(0, 1), method="nosuch")
    named = set(re.findall(r'"(\w+)"', str(refusal.value).partition("one of")[2]))
    assert named - {"fixed_adams", "scipy_solver"} == set(METHODS)  # an old name; no gradients
