"""Linear ODEs y' = M y solved by torchdiffeq; M is given as a function that multiplies by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ltocf.ode.solver import Solver

ADAPTIVE = ("dopri8", "dopri5", "bosh3", "fehlberg2", "adaptive_heun")
ON_A_GRID = ("euler", "midpoint", "heun2", "heun3", "rk4", "explicit_adams", "implicit_adams")
# All of torchdiffeq's methods except SciPy's, which have no gradients.
METHODS = ADAPTIVE + ON_A_GRID


@dataclass(frozen=True)
class LibrarySolver(Solver):
    """A method of torchdiffeq, by its name there, on the scalar problem."""

    method: str = "heun3"

    @property
    def reference(self) -> str:
        return self.method

    def trajectory(self, x: Tensor, start: Tensor, times: Tensor) -> Tensor:
        return integrate(self, self.method, lambda y: x * y, start, times)


def integrate(
    solver: Solver,
    method: str,
    multiply: Callable[[Tensor], Tensor],
    start: Tensor,
    times: Tensor,
    *,
    adjoint: bool = False,
) -> Tensor:
    """y at each of the times for y' = M y, by the named method of torchdiffeq, with the solver's
    steps and tolerances. (len(times), *start.shape)

    `adjoint` integrates the gradient backwards in time, instead of differentiating the steps.
    """
    # Imported here: it brings all of SciPy's integrators with it, half a second that most runs,
    # which use our own solvers, would spend for nothing.
    import torchdiffeq

    settings: dict[str, Any] = {"method": method, "rtol": solver.rtol, "atol": solver.atol}
    if method in ON_A_GRID:
        settings["options"] = {"grid_constructor": lambda func, y0, t: solver.grid(t)}
    solve = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint
    if adjoint:
        settings["adjoint_params"] = ()
    solution: Tensor = solve(lambda t, y: multiply(y), start, times, **settings)
    return solution
