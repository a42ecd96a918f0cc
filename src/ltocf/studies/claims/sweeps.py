"""Figures 10 and 11: how many times T to read the ODE at, and how long K the embeddings evolve;
each with fixed and with learned times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ltocf.pictures.charts import Chart, Series
from ltocf.studies.outcomes import METRICS, StudyResult
from ltocf.studies.plan import TIMES, Arm, Plan
from ltocf.studies.report import Page
from ltocf.studies.study import Study

QUICK = {"T": (1, 3), "K": (2, 4, 6)}  # of the values, under the quick budget


def swept(
    plan: Plan, letter: str, values: Sequence[int], change: Callable[[int], str]
) -> list[Arm]:
    return [
        Arm(f"{letter} = {value}, {kind}", (change(value), *extra))
        for kind, extra in TIMES.items()
        for value in _tried(plan, letter, values)
    ]


def _tried(plan: Plan, letter: str, values: Sequence[int]) -> Sequence[int]:
    return QUICK[letter] if plan.quick else values


def present_sweep(found: StudyResult, page: Page, letter: str, values: Sequence[int]) -> None:
    values = _tried(found.plan, letter, values)
    page.trainings(found)
    page.sweeps(found)
    for kind in TIMES:
        # Chosen on validation, so that its lead on test is no luck of the choice.
        best = max(values, key=lambda v: sum(found.valid(f"{letter} = {v}, {kind}")))
        page.say(f"With times {kind}, validation Recall@20 is highest at {letter} = {best}.")
        for value in values:
            if value != best:
                page.compare(found, f"{letter} = {best}, {kind}", f"{letter} = {value}, {kind}")
    for value in values:
        page.compare(found, f"{letter} = {value}, learned", f"{letter} = {value}, fixed")
    page.figures(*(_chart(found, letter, values, metric) for metric in METRICS))


def _chart(found: StudyResult, letter: str, values: Sequence[int], metric: str) -> Chart:
    series = []
    for kind in TIMES:
        columns = [found.test(f"{letter} = {value}, {kind}", metric) for value in values]
        ys = [list(row) for row in zip(*columns, strict=True)]
        series.append(Series(kind, values, ys))
    name = METRICS[metric]
    return Chart(
        metric[:-3], f"Test {name} over ${letter}$", f"${letter}$", name, series, whole_x=True
    )


def _study(
    letter: str, paper: str, shows: str, values: Sequence[int], change: Callable[[int], str]
) -> Study:
    return Study(
        name=letter,
        paper=paper,
        shows=f"{shows}, fixed against learned times",
        arms=partial(swept, letter=letter, values=values, change=change),
        present=partial(present_sweep, letter=letter, values=values),
    )


TIME_POINTS = _study(
    "T", "Figure 10", "T = 1 to 4 time points", range(1, 5), lambda T: f"time_points={T}"
)
END_TIME = _study(
    "K", "Figure 11", "end times K = 1 to 6", range(1, 7), lambda K: f"end_time={K}.0"
)
