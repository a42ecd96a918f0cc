"""Figures 8 and 9: how many times T to read the ODE at, and how long K the embeddings evolve; each
with fixed and with learned times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ltocf.studies.figures import Chart, Series
from ltocf.studies.outcomes import METRICS, Found
from ltocf.studies.plan import PAPERS_TIMES, TIMES, Plan, Setting, over_seeds
from ltocf.studies.report import Page, compare
from ltocf.studies.study import Study

Kinds = Mapping[str, Sequence[str]]


def swept(
    plan: Plan, letter: str, values: Sequence[int], change: Callable[[int], str], kinds: Kinds
) -> list[Setting]:
    """One seed a value, since a sweep is long; `times` has the spread."""
    settings = []
    for kind, extra in kinds.items():
        for value in values:
            label = f"{letter} = {value}, {kind}"
            settings += over_seeds(plan, label, change(value), *extra, seeds=1)
    return settings


def present_sweep(
    found: Found, page: Page, letter: str, values: Sequence[int], kinds: Kinds
) -> None:
    page.trainings(found)
    for kind in kinds:
        mean = {v: sum(found.test(f"{letter} = {v}, {kind}")) for v in values}
        best = max(mean, key=lambda value: mean[value])
        page.say(f"With times {kind}, test Recall@20 is highest at {letter} = {best}.")
    best = max(values, key=lambda v: sum(found.test(f"{letter} = {v}, learned")))
    ours, theirs = (found.test(f"{letter} = {best}, {kind}") for kind in ("learned", "fixed"))
    page.say(f"At {letter} = {best}: {compare('learned', ours, 'fixed', theirs)}")
    page.figures(*(_chart(found, letter, values, kinds, metric) for metric in METRICS))


def _chart(found: Found, letter: str, values: Sequence[int], kinds: Kinds, metric: str) -> Chart:
    series = []
    for kind in kinds:
        columns = [found.test(f"{letter} = {value}, {kind}", metric) for value in values]
        ys = [list(row) for row in zip(*columns, strict=True)]
        series.append(Series(kind, values, ys))
    name = METRICS[metric]
    return Chart(
        metric[:-3], f"Test {name} over ${letter}$", f"${letter}$", name, series, whole_x=True
    )


def _study(
    letter: str,
    paper: str,
    shows: str,
    values: Sequence[int],
    change: Callable[[int], str],
    kinds: Kinds,
) -> Study:
    return Study(
        name=letter,
        paper=paper,
        shows=f"{shows}, fixed against learned times",
        settings=partial(swept, letter=letter, values=values, change=change, kinds=kinds),
        present=partial(present_sweep, letter=letter, values=values, kinds=kinds),
    )


TIME_POINTS = _study(
    "T",
    "Figure 8",
    "T = 1 to 4 time points",
    range(1, 5),
    lambda T: f"time_points={T}",
    PAPERS_TIMES,
)
END_TIME = _study(
    "K", "Figure 9", "end times K = 1 to 6", range(1, 7), lambda K: f"end_time={K}.0", TIMES
)
