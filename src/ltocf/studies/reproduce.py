"""The paper's studies, one after another, into one directory with one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ltocf.data.sources.catalog import load_dataset
from ltocf.errors import ConfigError, DataError
from ltocf.progress import Progress, silent
from ltocf.studies import (
    connections,
    curves,
    equivalence,
    recipes,
    runtime,
    solvers,
    sweeps,
    table,
    times,
)
from ltocf.studies.estimates import seconds_of
from ltocf.studies.plan import Budget, Plan
from ltocf.studies.report import Page, assemble
from ltocf.studies.runner import Runner
from ltocf.studies.study import Study

# In this order `all` runs them and the report has them.
STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        equivalence.STUDY,
        curves.STUDY,
        solvers.STUDY,
        connections.STUDY,
        sweeps.TIME_POINTS,
        sweeps.END_TIME,
        times.STUDY,
        runtime.STUDY,
        recipes.STUDY,
        table.STUDY,
    )
}


@dataclass(frozen=True)
class Listed:
    """A study as the listing shows it."""

    name: str
    paper: str
    shows: str
    trainings: int
    seconds: float  # on two cores, about


def chosen(names: Sequence[str]) -> list[Study]:
    """The studies of these names, in our order; all of them for 'all'."""
    for name in names:
        if name not in STUDIES and name != "all":
            raise ConfigError(f"unknown study {name!r}; choose from: {', '.join(STUDIES)} or all")
    return [study for name, study in STUDIES.items() if name in names or "all" in names]


def plan_for(
    data: str,
    budget: Budget | None = None,
    seeds: int | None = None,
    overrides: Sequence[str] = (),
) -> Plan:
    """By default the town is studied quickly and real data in full."""
    dataset = load_dataset(data)
    usual: Budget = "quick" if data == "town" else "full"
    return Plan(dataset, data, budget or usual, seeds, tuple(overrides))


def listing(plan: Plan) -> list[Listed]:
    """What there is to study and what it takes."""
    listed = []
    for study in STUDIES.values():
        settings = study.settings(plan)
        seconds = seconds_of(settings, plan) + study.extra_seconds(plan)
        listed.append(Listed(study.name, study.paper, study.shows, len(settings), seconds))
    return listed


def reproduce(
    studies: Sequence[Study],
    plan: Plan,
    output: Path,
    progress: Progress = silent,
) -> Path:
    """Train what is missing, draw, and write OUTPUT/report.md; everything is checked before."""
    settings = []
    for study in studies:
        if lack := study.lacks(plan.dataset):
            raise DataError(f"study {study.name!r} needs {lack} (data set {plan.dataset.name!r})")
        settings += study.settings(plan)
    runner = Runner(output, plan, progress)
    runner.expect(settings)
    report = output / "report.md"
    for study in studies:
        page = Page(output / study.name, study.shows, study.paper)
        study.present(runner.conduct(study), page)
        page.write()
        report = assemble(output, _title(plan), _about(plan), list(STUDIES))
    return report


def _title(plan: Plan) -> str:
    return f"The LT-OCF paper's studies on {plan.dataset.name}"


def _about(plan: Plan) -> str:
    counts = plan.dataset.counts
    size = (
        f"{counts['users']:,} users, {counts['items']:,} items, {counts['train']:,} training pairs"
    )
    extra = (
        f" with {' '.join(plan.overrides)} for every training that has it" if plan.overrides else ""
    )
    caution = " The quick budget shows that every study runs; its figures mean little." * plan.quick
    return (
        f"{plan.dataset.name}: {size}. Budget: {plan.budget}{extra}.{caution}\n\n"
        "Unless a study says otherwise: K = 4, T = 3, RK4, linear connections, equal weights, 64 "
        "dimensions under the full budget; the epoch is chosen on held-out training pairs (a tenth "
        "at random, or the latest, as many as test has), and the test pairs are looked at once, at "
        "the end. ± and bands are the standard deviation over seeds. A name links its config; "
        "beside every figure lies its data as CSV. Seconds are those of training on this machine."
    )
