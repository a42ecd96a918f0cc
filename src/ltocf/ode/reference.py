"""The same propagation through torchdiffeq on the embeddings themselves: slow, and beyond doubt."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.ode.solvers import Connection, Solver, connect
from ltocf.ode.torchdiffeq import METHODS


def reference_method(solver: str) -> str:
    """torchdiffeq's name for a solver; a ConfigError if it has none like it."""
    method = {"dormand_prince": "dopri5"}.get(solver, solver)
    if method not in METHODS:
        raise ConfigError(
            f"torchdiffeq has no {solver!r}, so there is no reference for it; use "
            f"propagation='spectral' or one of: {', '.join(METHODS)}"
        )
    return method


def propagate(
    multiply: Callable[[Tensor], Tensor],
    E: Tensor,
    times: Tensor,
    weights: Tensor,
    *,
    solver: Solver,
    connection: Connection,
    adjoint: bool = False,
) -> Tensor:
    """sum_i w_i E(t_i) for dE/dt = M E, where `multiply` is M. (n_nodes, dim)"""
    method = reference_method(solver.name)

    def trajectory(start: Tensor, times: Tensor) -> Tensor:
        return solver.integrate(multiply, start, times, method, adjoint=adjoint)

    states = connect(trajectory, E, times, connection)
    return (weights.to(E.dtype)[:, None, None] * states).sum(0)
