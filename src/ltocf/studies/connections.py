"""Table 2: linear against residual connections, adjacency against Laplacian."""

from __future__ import annotations

from ltocf.studies.curves import epoch_chart
from ltocf.studies.figures import Chart, Series
from ltocf.studies.outcomes import METRICS, Found
from ltocf.studies.plan import Plan, Setting, over_seeds
from ltocf.studies.report import Page, compare
from ltocf.studies.study import Study

CONNECTIONS, OPERATORS = ("linear", "residual"), ("adjacency", "laplacian")


def settings(plan: Plan) -> list[Setting]:
    return [
        setting
        for connection in CONNECTIONS
        for operator in OPERATORS
        for setting in over_seeds(
            plan, f"{connection}, {operator}", *_changes(connection, operator), seeds=1
        )
    ]


def _changes(connection: str, operator: str) -> list[str]:
    """Nothing for the defaults, so that the training is shared with other studies."""
    changes = [] if connection == "linear" else ["connection=residual"]
    return changes if operator == "adjacency" else [*changes, "operator=laplacian"]


def present(found: Found, page: Page) -> None:
    page.trainings(found)
    base = "linear, adjacency"
    for label in found.labels[1:]:
        page.say(compare(base, found.test(base), label, found.test(label)))
    page.figures(
        *(_dots(found, metric) for metric in METRICS),
        epoch_chart(found, "recall@20", "Validation Recall@20"),
    )


def _dots(found: Found, metric: str) -> Chart:
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
    paper="Table 2 and section 3.3",
    shows="linear against residual connections, adjacency against Laplacian",
    settings=settings,
    present=present,
)
