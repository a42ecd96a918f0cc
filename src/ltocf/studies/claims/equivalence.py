"""Section 3.2: with Euler's method, unit steps and fixed times, LT-OCF is LightGCN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ltocf.models import build_model
from ltocf.models.embedding import EmbeddingModel
from ltocf.studies.claims.curves import epoch_chart
from ltocf.studies.outcomes import Outcome, StudyResult
from ltocf.studies.plan import Plan, Setting
from ltocf.studies.report import Page
from ltocf.studies.study import Study

LAYERS = (2, 3, 4)
DRAWN = 3


def settings(plan: Plan) -> list[Setting]:
    """The same draws, from the same random start: each LightGCN, its LT-OCF, and one by RK4."""
    found = []
    for layers in LAYERS:
        found += [
            Setting(_lightgcn(layers), _config(plan, "lightgcn", f"layers={layers}")),
            Setting(_ltocf(layers), _config(plan, "ltocf", "solver=euler", *_times(layers))),
        ]
    contrast = _config(plan, "ltocf", "solver=rk4", *_times(DRAWN))
    return [*found, Setting(_ltocf(DRAWN, "RK4"), contrast)]


def _config(plan: Plan, model: str, *changes: str) -> Any:
    short = [] if plan.quick else ["epochs=4"]
    return plan.config(model, "start=random", "scale=natural", *short, *changes)


def _times(layers: int) -> list[str]:
    unit = [f"end_time={layers}.0", f"time_points={layers - 1}"]
    return [*unit, "learn_times=false", "tolerance=1e-12"]


def _lightgcn(layers: int) -> str:
    return f"LightGCN, {layers} layers"


def _ltocf(layers: int, solver: str = "Euler") -> str:
    return f"LT-OCF, {solver}, K = {layers}"


@torch.no_grad()
def measure(plan: Plan, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Largest differences of the final embeddings: after training each by itself, and of Euler's
    method by torchdiffeq on LightGCN's trained initial embeddings."""
    trained = {outcome.setting.label: outcome for outcome in outcomes}
    measured: dict[str, Any] = {}
    for layers in LAYERS:
        theirs, ours = trained[_lightgcn(layers)].model(), trained[_ltocf(layers)].model()
        options = trained[_ltocf(layers)].setting.config.model_options
        stepped = build_model(ours.graph, "ltocf", options | {"propagation": "reference"})
        assert isinstance(theirs, EmbeddingModel) and isinstance(ours, EmbeddingModel)
        assert isinstance(stepped, EmbeddingModel)
        stepped.weight.copy_(theirs.weight)
        final = theirs.embeddings()
        measured[str(layers)] = {
            "size": float(final.abs().max()),
            "trained": float((final - ours.embeddings()).abs().max()),
            "stepped": float((final - stepped.embeddings()).abs().max()),
        }
    return measured


def present(found: StudyResult, page: Page) -> None:
    page.say(
        "Largest differences between LightGCN with L layers and LT-OCF with Euler's method, K = L, "
        "unit steps and fixed times, each trained by itself from the same start on the same draws; "
        "and, as a check by other means, of the embeddings that torchdiffeq's Euler method makes "
        "of LightGCN's initial ones."
    )
    rows = []
    for layers, values in found.measured.items():
        loss, recall = (_differences(found, int(layers), what) for what in ("loss", "recall@20"))
        cells = [max(loss), max(recall), values["trained"], values["stepped"]]
        rows.append([layers, f"{values['size']:.3g}", *(f"{cell:.1e}" for cell in cells)])
    page.table(
        ["layers L", "largest embedding", "training loss", "validation Recall@20",
         "embeddings after training", "embeddings by torchdiffeq"],
        rows,
    )  # fmt: skip
    page.trainings(found)
    labels = [_lightgcn(DRAWN), _ltocf(DRAWN), _ltocf(DRAWN, "RK4")]
    drawn = StudyResult(found.plan, [outcome for label in labels for outcome in found.of(label)])
    page.figures(
        epoch_chart(drawn, "loss", "Training loss", "BPR loss"),
        epoch_chart(drawn, "recall@20", "Validation Recall@20"),
    )


def _differences(found: StudyResult, layers: int, what: str) -> list[float]:
    """Of the two trainings, epoch by epoch."""
    theirs, ours = (found.of(label)[0].history for label in (_lightgcn(layers), _ltocf(layers)))
    pairs = zip(theirs, ours, strict=True)
    if what == "loss":
        return [abs(a.loss - b.loss) for a, b in pairs]
    return [abs(a.metrics[what] - b.metrics[what]) for a, b in pairs]


STUDY = Study(
    name="equivalence",
    paper="section 3.2",
    shows="LT-OCF with Euler's method, unit steps and fixed times is LightGCN",
    settings=settings,
    present=present,
    measure=measure,
)
