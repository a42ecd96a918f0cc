"""What the studies of T and of K share: a number is swept, with fixed and with learned times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ltocf.studies.figures import Chart, Series
from ltocf.studies.outcomes import METRICS, Found
from ltocf.studies.plan import Plan, Setting, kinds_of_times, over_seeds
from ltocf.studies.report import Page, compare


def swept(
    plan: Plan, letter: str, values: Sequence[int], changes: Callable[[int], list[str]]
) -> list[Setting]:
    """One seed a value, since a sweep is long; `times` has the spread."""
    settings = []
    for kind, extra in kinds_of_times().items():
        for value in values:
            label = f"{letter} = {value}, {kind}"
            settings += over_seeds(plan, label, *changes(value), *extra, seeds=1)
    return settings


def present_sweep(found: Found, page: Page, letter: str, values: Sequence[int]) -> None:
    page.trainings(found)
    for kind in kinds_of_times():
        mean = {v: sum(found.test(f"{letter} = {v}, {kind}")) for v in values}
        best = max(mean, key=lambda value: mean[value])
        page.say(f"With times {kind}, test Recall@20 is highest at {letter} = {best}.")
    best = max(values, key=lambda v: sum(found.test(f"{letter} = {v}, learned")))
    ours, theirs = (found.test(f"{letter} = {best}, {kind}") for kind in ("learned", "fixed"))
    page.say(f"At {letter} = {best}: {compare('learned', ours, 'fixed', theirs)}")
    page.figures(*(_chart(found, letter, values, metric) for metric in METRICS))


def _chart(found: Found, letter: str, values: Sequence[int], metric: str) -> Chart:
    series = []
    for kind in kinds_of_times():
        columns = [found.test(f"{letter} = {value}, {kind}", metric) for value in values]
        ys = [list(row) for row in zip(*columns, strict=True)]
        series.append(Series(kind, values, ys))
    name = METRICS[metric]
    return Chart(
        metric[:-3], f"Test {name} over ${letter}$", f"${letter}$", name, series, whole_x=True
    )
