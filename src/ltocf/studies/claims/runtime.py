"""Figure 12: accuracy against training time and against inference time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from ltocf.config import BPR
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.machine.threads import threads_for
from ltocf.models import build_model
from ltocf.models.base import Model
from ltocf.pictures.charts import Chart, Series
from ltocf.studies.claims.solvers import seconds_chart
from ltocf.studies.outcomes import Outcome, StudyResult
from ltocf.studies.plan import Arm, Plan
from ltocf.studies.report import Page
from ltocf.studies.study import Study

SOLVERS = {"euler": "Euler", "rk4": "RK4", "dormand_prince": "Dormand-Prince"}
LIGHTGCN = "LightGCN, 3 layers"
BATCH = 2048  # the paper's
REPEATS = 3  # of a step, which takes torchdiffeq a minute with Dormand-Prince on Yelp2018
OURS, THEIRS = "ours", "torchdiffeq"
PATHS = {OURS: "on the spectrum", THEIRS: "on the embeddings"}


def arms(plan: Plan) -> list[Arm]:
    return [
        Arm(LIGHTGCN, ("layers=3",), "lightgcn"),
        *(Arm(f"LT-OCF, {label}", (f"solver={solver}",)) for solver, label in SOLVERS.items()),
    ]


def measure(plan: Plan, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Median seconds of a training step and of an inference, ours and the reference in turns."""
    seconds: dict[str, Any] = {}
    graph: BipartiteGraph | None = None
    for outcome in outcomes:
        if outcome.setting.label in seconds:  # another seed
            continue
        model = outcome.model()
        graph = graph or model.graph
        paths: dict[str, Model] = {OURS: model}
        if outcome.setting.config.model_name == "ltocf":
            options = outcome.setting.config.model_options | {"propagation": "reference"}
            paths[THEIRS] = build_model(graph, "ltocf", options)
            paths[THEIRS].load_state_dict(model.state_dict())
        with threads_for(sum(parameter.numel() for parameter in model.parameters())):
            steps = _interleaved({k: _step_of(m) for k, m in paths.items()}, REPEATS)
            answers = _interleaved({k: m.scorer for k, m in paths.items()}, REPEATS)
        seconds[outcome.setting.label] = {"step": steps, "inference": answers}
    return seconds


def _step_of(model: Model) -> Callable[[], object]:
    """One training step of the paper's: a batch of 2,048 with one negative, and its gradients."""
    loss = BPR(negatives=1, sampling="uniform", l2=1e-4)
    batches = model.batches(loss, batch_size=BATCH, draw_by="pairs", seed=0, epoch=1)
    batch = next(drawn.whole() for drawn in batches)

    def step() -> None:
        model.zero_grad()
        model.loss(batch, loss).backward()  # type: ignore[no-untyped-call]

    return step


def _interleaved(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, taken in turns so that a busy moment falls on all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()  # the first one compiles
    for _ in range(repeats):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - started)
    return {name: median(values) for name, values in seconds.items()}


def present(found: StudyResult, page: Page) -> None:
    page.trainings(found)
    page.say(
        f"Seconds of a training step (batch {BATCH:,}, one negative, forward and backward) and of "
        "computing all final embeddings, by our path and by torchdiffeq on the embeddings over the "
        "same sparse product."
    )
    rows = []
    for label, values in found.measured.items():
        cells = []
        for what in ("step", "inference"):
            ours, theirs = values[what][OURS], values[what].get(THEIRS)
            ratio = f"{theirs / ours:.1f}" if theirs else ""
            cells += [f"{ours:.4f}", f"{theirs:.4f}" if theirs else "", ratio]
        rows.append([label, *cells])
    heads = [
        f"{what}{side}"
        for what in ("step", "inference")
        for side in (", s", " torchdiffeq, s", " ratio")
    ]
    page.table(["model", *heads], rows)
    steps = {label: values["step"] for label, values in found.measured.items()}
    euler, light = steps["LT-OCF, Euler"][OURS], steps[LIGHTGCN][OURS]
    page.say(
        "The paper: Euler takes 30 to 50 % longer than LightGCN, and RK4 33 % less than "
        f"Dormand-Prince. Here Euler takes {euler / light - 1:+.0%}, and RK4 "
        f"{_saving(steps, OURS)} on the spectrum, {_saving(steps, THEIRS)} on the embeddings."
    )
    page.figures(seconds_chart(found), _inference(found), _steps(found))


def _saving(steps: dict[str, dict[str, float]], path: str) -> str:
    """RK4's step against Dormand-Prince's."""
    return f"{steps['LT-OCF, RK4'][path] / steps['LT-OCF, Dormand-Prince'][path] - 1:+.0%}"


def _inference(found: StudyResult) -> Chart:
    series = []
    for path, mark in PATHS.items():
        labels = [label for label in found.measured if path in found.measured[label]["inference"]]
        x = [1000 * found.measured[label]["inference"][path] for label in labels]
        ys = [[found.test(label)[0] for label in labels]]
        notes = [label.removeprefix("LT-OCF, ") for label in labels]
        series.append(Series(mark, x, ys, notes))
    return Chart(
        "inference", "Accuracy against inference time", "all final embeddings (ms)",
        "test Recall@20", series, "scatter", log_x=True,
    )  # fmt: skip


def _steps(found: StudyResult) -> Chart:
    labels = list(found.measured)
    series = []
    for path, mark in PATHS.items():
        rows = [row for row, label in enumerate(labels) if path in found.measured[label]["step"]]
        values = [1000 * found.measured[labels[row]]["step"][path] for row in rows]
        series.append(Series(mark, rows, [values]))
    return Chart("step", "One training step", "ms", "", series, "dots", ticks=labels, log_x=True)


STUDY = Study(
    name="runtime",
    paper="Figure 12",
    shows="Recall against training time and against inference time",
    arms=arms,
    present=present,
    measure=measure,
    extra_seconds=lambda plan: len(plan.dataset.split.train) / 1e6 * 300,
)
