"""Contribution 3: linear against dense (residual) connections, adjacency against Laplacian."""

from __future__ import annotations

from ltocf.pictures.charts import Chart, Series
from ltocf.studies.claims.curves import epoch_chart
from ltocf.studies.outcomes import METRICS, StudyResult
from ltocf.studies.plan import Arm, Plan
from ltocf.studies.report import Page
from ltocf.studies.study import Study

CONNECTIONS, OPERATORS = ("linear", "residual"), ("adjacency", "laplacian")


def arms(plan: Plan) -> list[Arm]:
    return [
        Arm(f"{connection}, {operator}", _changes(connection, operator))
        for connection in CONNECTIONS
        for operator in OPERATORS
    ]


def _changes(connection: str, operator: str) -> tuple[str, ...]:
    """Nothing for the defaults, so that the training is shared with other studies."""
    changes = () if connection == "linear" else ("connection=residual",)
    return changes if operator == "adjacency" else (*changes, "operator=laplacian")


def present(found: StudyResult, page: Page) -> None:
    page.trainings(found)
    page.sweeps(found)
    for label in found.labels[1:]:
        page.compare(found, label, found.labels[0])
    page.figures(
        *(_dots(found, metric) for metric in METRICS),
        epoch_chart(found, "recall@20", "Validation Recall@20"),
    )


def _dots(found: StudyResult, metric: str) -> Chart:
    labels = found.labels
    tested = [found.test(label, metric) for label in labels]
    values = [list(seed) for seed in zip(*tested, strict=True)]
    name = METRICS[metric]
    series = [Series("a seed", range(len(labels)), values)]
    return Chart(
        f"test-{metric[:-3]}", f"Test {name}", f"test {name}", "", series, "dots", ticks=labels
    )


STUDY = Study(
    name="connections",
    paper="Table 1 and contribution 3",
    shows="linear against residual connections, adjacency against Laplacian",
    arms=arms,
    present=present,
)
