"""Section 4.3: do learned times gain more than another seed does?"""

from __future__ import annotations

from ltocf.studies.curves import epoch_chart, times_charts
from ltocf.studies.figures import Chart, Series
from ltocf.studies.outcomes import METRICS, Found
from ltocf.studies.plan import TIMES, Plan, Setting, over_seeds
from ltocf.studies.report import Page, compare
from ltocf.studies.study import Study

FIXED, LEARNED = "fixed", "learned"


def settings(plan: Plan) -> list[Setting]:
    return [
        setting for kind, changes in TIMES.items() for setting in over_seeds(plan, kind, *changes)
    ]


def present(found: Found, page: Page) -> None:
    page.trainings(found)
    for kind in found.labels[1:]:
        for metric, name in METRICS.items():
            ours, theirs = found.test(kind, metric), found.test(FIXED, metric)
            page.say(f"Test {name}, {compare(kind, ours, FIXED, theirs)}")
    page.figures(*(_by_seed(found, metric) for metric in METRICS))
    page.figures(
        epoch_chart(found, "recall@20", "Validation Recall@20"), *times_charts(found, LEARNED)
    )


def _by_seed(found: Found, metric: str) -> Chart:
    """A line a seed, over the kinds of times: the same start and the same draws."""
    tested = [found.test(kind, metric) for kind in found.labels]
    series = [
        Series(f"seed {seed}", range(len(tested)), [values])
        for seed, values in enumerate(zip(*tested, strict=True))
    ]
    ticks = [kind.replace(" on ", "\non ") for kind in found.labels]
    name = METRICS[metric]
    return Chart(f"test-{metric[:-3]}", f"Test {name} by seed", "times", name, series, ticks=ticks)


STUDY = Study(
    name="times",
    paper="section 4.3",
    shows="fixed against learned times, with the spread over seeds",
    settings=settings,
    present=present,
)
