"""The same propagation by torchdiffeq on the embeddings themselves: slow, but a reference to test
the fast one against."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.ode.library import METHODS, integrate
from ltocf.ode.solver import Connection, Solver, connect


def reference_method(solver: Solver) -> str:
    """torchdiffeq's name for a solver; a ConfigError if it does not have that solver."""
    if solver.reference is None:
        raise ConfigError(
            "torchdiffeq does not have this solver; use propagation='spectral' or one of these "
            f"solvers: {', '.join(METHODS)}"
        )
    return solver.reference


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
    method = reference_method(solver)

    def trajectory(start: Tensor, times: Tensor) -> Tensor:
        return integrate(solver, method, multiply, start, times, adjoint=adjoint)

    states = connect(trajectory, E, times, connection)
    return (weights.to(E.dtype)[:, None, None] * states).sum(0)
