"""Figure 9: what the ODE solver changes, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from ltocf.errors import ConfigError
from ltocf.models.ltocf import LTOCF
from ltocf.ode.reference import propagate, reference_method
from ltocf.pictures.charts import Chart, Series
from ltocf.studies.claims.curves import epoch_chart
from ltocf.studies.outcomes import Outcome, StudyResult
from ltocf.studies.plan import Arm, Plan
from ltocf.studies.report import Page
from ltocf.studies.study import Study

SOLVERS = {
    "euler": "Euler",
    "midpoint": "midpoint",
    "rk4": "RK4",
    "adams_moulton": "Adams-Moulton",
    "dormand_prince": "Dormand-Prince",
    "exact": "exact",
}


def arms(plan: Plan) -> list[Arm]:
    return [Arm(label, (f"solver={solver}",)) for solver, label in SOLVERS.items()]


@torch.no_grad()
def measure(plan: Plan, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The response of each trained model, and the sparse products of one forward pass."""
    x = torch.linspace(-1, 1, 101, dtype=torch.float64)
    measured: dict[str, Any] = {"x": x.tolist(), "response": {}, "ours": {}, "theirs": {}}
    for outcome in outcomes:
        model = outcome.model()
        assert isinstance(model, LTOCF)
        label, values = outcome.setting.label, model.response(x)
        measured["response"][label] = (values / values[-1]).tolist()
        measured["ours"][label] = len(model.coefficients()) - 1
        measured["theirs"][label] = evaluations(model)
    return measured


def evaluations(model: LTOCF) -> int | None:
    """How often torchdiffeq asks for the derivative on the embeddings; none where it cannot."""
    try:
        reference_method(model.solver)
    except ConfigError:
        return None
    nodes = torch.linspace(-1, 1, 33, dtype=torch.float64)[:, None]
    calls = 0

    def multiply(y: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return nodes * y

    start, times, weights = torch.ones_like(nodes), model.times(), model.state_weights
    connection = model.config.connection
    propagate(multiply, start, times, weights, solver=model.solver, connection=connection)
    return calls


def present(found: StudyResult, page: Page) -> None:
    page.trainings(found)
    page.sweeps(found)
    measured = found.measured
    rows = [
        [label, str(measured["theirs"][label] or ""), str(measured["ours"][label])]
        for label in found.labels
    ]
    page.say("Products with the adjacency in a forward pass; a backward pass takes as many.")
    page.table(["solver", "torchdiffeq on the embeddings", "on the spectrum, here"], rows)
    for label in found.labels:
        if label != "RK4":
            page.compare(found, "RK4", label)
    page.figures(epoch_chart(found, "recall@20", "Validation Recall@20"), seconds_chart(found))
    series = [Series(name, measured["x"], [ys]) for name, ys in measured["response"].items()]
    page.figures(_response_chart(series))


def _response_chart(series: Sequence[Series]) -> Chart:
    return Chart(
        "response", "What each solver makes of the spectrum", "eigenvalue $x$ of $A$",
        "$h(x) / h(1)$", series, markers=False,
    )  # fmt: skip


def seconds_chart(found: StudyResult, *, log: bool = False) -> Chart:
    """Validation Recall@20 over the seconds of training, a line a label, of the first seed."""
    series = []
    for label in found.labels:
        history = found.of(label)[0].history
        passed = accumulate(record.seconds for record in history)
        points = [
            (x, r.metrics["recall@20"]) for x, r in zip(passed, history, strict=True) if r.metrics
        ]
        series.append(Series(label, [x for x, _ in points], [[y for _, y in points]]))
    return Chart(
        "recall-by-seconds", "Validation Recall@20 over time", "training time (s)", "Recall@20",
        series, log_x=log,
    )  # fmt: skip


STUDY = Study(
    name="solvers",
    paper="Figure 9",
    shows="accuracy and cost of six ODE solvers",
    arms=arms,
    present=present,
    measure=measure,
)
