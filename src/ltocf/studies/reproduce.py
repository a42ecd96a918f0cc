"""The paper's studies, one after another, into one directory with one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ltocf.data.sources.catalog import load_dataset
from ltocf.errors import ConfigError, DataError
from ltocf.progress import Progress, silent
from ltocf.studies.claims import (
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
from ltocf.studies.plan import EQUAL_SCALE, Budget, Plan, Setting
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
class StudyEntry:
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
    # A folder's test pairs of items that train lacks are misses, as in the published protocol.
    dataset = load_dataset(data, unknown="keep")
    usual: Budget = "quick" if data == "town" else "full"
    return Plan(dataset, data, budget or usual, seeds, tuple(overrides))


def listing(plan: Plan) -> list[StudyEntry]:
    """What there is to study and what it takes."""
    listed = []
    for study in STUDIES.values():
        settings = all_settings(study, plan)
        seconds = seconds_of(settings, plan) + study.extra_seconds(plan)
        listed.append(StudyEntry(study.name, study.paper, study.shows, len(settings), seconds))
    return listed


def all_settings(study: Study, plan: Plan) -> list[Setting]:
    """Every training of a study; which rates an arm is tried with and which one its further seeds
    take is not known before."""
    settings = study.settings(plan)
    for arm in study.arms(plan):
        rates = plan.rates(arm)[plan.first_rate :][: plan.usual_trials]
        settings += [plan.trial(arm, rate) for rate in rates]
        settings += [plan.trial(arm, rates[-1], seed) for seed in plan.all_seeds[1:]]
        settings += [plan.time_search(arm)] if arm.nested_times else []
    return settings


def reproduce(
    studies: Sequence[Study],
    plan: Plan,
    output: Path,
    progress: Progress = silent,
) -> Path:
    """Train what is missing, draw, and write OUTPUT/report.md; everything is checked before."""
    runner = Runner(output, plan, progress)
    for study in studies:
        if lack := study.lacks(plan.dataset):
            raise DataError(f"study {study.name!r} needs {lack} (data set {plan.dataset.name!r})")
        runner.expect(study)
    report = output / "report.md"
    for study in studies:
        page = Page(output / study.name, study.shows, study.paper, plan.dataset.name, plan.portion)
        study.present(runner.conduct(study), page)
        page.write()
        report = assemble(output, _title(plan), _about(plan), list(STUDIES))
    return report


def _title(plan: Plan) -> str:
    portion = f", {plan.portion}" if plan.portion else ""
    return f"The LT-OCF paper's studies on {plan.dataset.name}{portion}"


def _about(plan: Plan) -> str:
    counts = plan.dataset.counts
    size = (
        f"{counts['users']:,} users, {counts['items']:,} items, {counts['train']:,} training pairs"
    )
    extra = (
        f" with {' '.join(plan.overrides)} for every training that has it" if plan.overrides else ""
    )
    caution = " The quick budget shows that every study runs; its figures mean little." * plan.quick
    if plan.portion:
        caution += (
            f" These are {plan.portion} of {plan.portion.of}, with all of its test pairs. What is "
            "missing can be neither learned nor left out of a list, so figures here are in all "
            "likelihood below those on the whole, and must not be put in one column with them."
        )
    return (
        f"{plan.dataset.name}: {size}. Budget: {plan.budget}{extra}.{caution}\n\n"
        "Unless a study says otherwise: K = 4, T = 3, RK4, linear connections, equal weights, 32 "
        f"dimensions under the full budget. Every response is scaled to h(1) = {EQUAL_SCALE}, each "
        "arm has the learning rate that validation prefers for it, and all take as many steps. "
        "The epoch is chosen on held-out training pairs (a tenth at random, or the latest, as many "
        "as test has); test figures are those of the chosen rate. ± and bands are the standard "
        "deviation over seeds. A name links its config; beside every figure lies its data as CSV, "
        "beside every table its LaTeX. Seconds are those of training on this machine."
    )
