"""The response h(x) of solvers and of trained models: what they make of each eigenvalue of A."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from ltocf.models.base import Response
from ltocf.ode.solver import Connection, Solver
from ltocf.ode.solvers import find_solver
from ltocf.ode.times import TimePoints, evenly
from ltocf.pictures.style import save_picture


def solver_responses(
    connection: Connection, *, end_time: float = 4.0, time_points: int = 3
) -> dict[str, Response]:
    """h of each solver with equal weights and even times, and of LightGCN with as many layers."""
    times = TimePoints(evenly(time_points, end_time), end_time, learn=False)()

    def of(solver: Solver) -> Response:
        return lambda x: solver.states(x, times, connection).mean(0)

    layers = time_points + 1
    names = ("euler", "midpoint", "rk4", "dormand_prince", "exact")
    return {
        **{name: of(find_solver(name)) for name in names},
        "adams_moulton": of(find_solver("adams_moulton", steps=4)),
        f"LightGCN, {layers} layers": lambda x: torch.stack(
            [x**power for power in range(layers + 1)]
        ).mean(0),
    }


def draw_responses(
    path: Path, responses: Mapping[str, Response], *, title: str = "", relative: bool = False
) -> None:
    """Curves of h over the spectrum; `relative` draws h(x) / h(1). The suffix is the format."""
    x = torch.linspace(-1, 1, 401, dtype=torch.float64)
    values = _sample(responses, x, relative)
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    FigureCanvasAgg(figure)
    _draw(figure.subplots(), x, values, title, "h(x) / h(1)" if relative else "h(x)")
    save_picture(figure, path)


def draw_change(path: Path, responses: Mapping[str, Response], *, title: str = "") -> None:
    """Two responses, and beside them the second less the first, which is small."""
    x = torch.linspace(-1, 1, 401, dtype=torch.float64)
    values = _sample(responses, x, relative=False)
    before, after = values.values()
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw(left, x, values, title, "h(x)")
    _draw(right, x, {" less ".join(reversed(values)): after - before}, "", "change of h(x)")
    save_picture(figure, path)


@torch.no_grad()
def _sample(responses: Mapping[str, Response], x: Tensor, relative: bool) -> dict[str, Tensor]:
    values = {name: response(x) for name, response in responses.items()}
    return {name: value / value[-1] if relative else value for name, value in values.items()}


def _draw(axes: Any, x: Tensor, values: Mapping[str, Tensor], title: str, label: str) -> None:
    # Some curves coincide: the earlier a curve, the wider, so that it shows behind the later ones.
    for i, (name, value) in enumerate(values.items()):
        axes.plot(x, value, label=name, linewidth=1.2 + 0.6 * (len(values) - 1 - i))
    axes.set(xlabel="eigenvalue x of A", ylabel=label, title=title)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
