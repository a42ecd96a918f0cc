"""Every ODE solver by the name that `solver=` takes. A new one is a class and a line here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ltocf.errors import ConfigError
from ltocf.ode import one_step
from ltocf.ode.adams_moulton import AdamsMoulton
from ltocf.ode.dormand_prince import DormandPrince
from ltocf.ode.library import METHODS, LibrarySolver
from ltocf.ode.one_step import OneStepSolver
from ltocf.ode.solver import Solver

OURS: dict[str, Solver] = {
    "euler": OneStepSolver(growth=one_step.euler, same_as="euler"),
    "midpoint": OneStepSolver(growth=one_step.midpoint, same_as="midpoint"),
    "rk4": OneStepSolver(growth=one_step.rk4, same_as="rk4"),
    "exact": OneStepSolver(growth=one_step.exact),
    "adams_moulton": AdamsMoulton(),
    "dormand_prince": DormandPrince(),
}
# Ours come first: they are faster than torchdiffeq's, since they handle all samples at once.
SOLVERS: dict[str, Solver] = OURS | {
    name: LibrarySolver(method=name) for name in METHODS if name not in OURS
}


def find_solver(name: str, **settings: Any) -> Solver:
    """The solver of that name, with these steps or tolerances instead of its defaults. An unknown
    name is a ConfigError."""
    if name not in SOLVERS:
        raise ConfigError(f"unknown solver {name!r}; choose one of: {', '.join(SOLVERS)}")
    return replace(SOLVERS[name], **settings)
