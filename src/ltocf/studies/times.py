"""Section 4.3: do learned times gain more than another seed does?"""

from __future__ import annotations

from ltocf.studies.curves import epoch_chart, times_charts
from ltocf.studies.figures import Chart, Series
from ltocf.studies.outcomes import METRICS, Found
from ltocf.studies.plan import Plan, Setting, over_seeds
from ltocf.studies.report import Page, compare
from ltocf.studies.study import Study

FIXED, LEARNED = "fixed times", "learned times"


def settings(plan: Plan) -> list[Setting]:
    return [*over_seeds(plan, FIXED, "learn_times=false"), *over_seeds(plan, LEARNED)]


def present(found: Found, page: Page) -> None:
    page.trainings(found)
    for metric, name in METRICS.items():
        ours, theirs = found.test(LEARNED, metric), found.test(FIXED, metric)
        page.say(f"Test {name}: {compare(LEARNED, ours, FIXED, theirs)}")
    page.figures(*(_pairs(found, metric) for metric in METRICS))
    page.figures(
        epoch_chart(found, "recall@20", "Validation Recall@20"), *times_charts(found, LEARNED)
    )


def _pairs(found: Found, metric: str) -> Chart:
    """A line a seed, from fixed to learned: the same start and the same draws."""
    fixed, learned = found.test(FIXED, metric), found.test(LEARNED, metric)
    series = [
        Series(f"seed {seed}", [0, 1], [[fixed[seed], learned[seed]]]) for seed in range(len(fixed))
    ]
    name = METRICS[metric]
    ticks = ["fixed", "learned"]
    return Chart(f"test-{metric[:-3]}", f"Test {name} by seed", "times", name, series, ticks=ticks)


STUDY = Study(
    name="times",
    paper="section 4.3",
    shows="fixed against learned times, with the spread over seeds",
    settings=settings,
    present=present,
)
