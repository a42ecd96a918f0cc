"""Table 4: do learned times beat fixed ones, and by more than seeds and users differ?"""

from __future__ import annotations

from ltocf.pictures.charts import Chart, Series
from ltocf.studies.claims.curves import epoch_chart, times_charts
from ltocf.studies.outcomes import METRICS, Outcome, StudyResult
from ltocf.studies.plan import TIMES, Arm, Plan
from ltocf.studies.report import Page
from ltocf.studies.study import Study

FIXED, LEARNED, HELD_OUT = "fixed", "learned", "learned on held-out pairs"


def arms(plan: Plan) -> list[Arm]:
    """Those learned on held-out pairs learn them on a cut of the others' training pairs."""
    return [
        *(Arm(kind, changes) for kind, changes in TIMES.items()),
        Arm(HELD_OUT, nested_times=True),
    ]


def present(found: StudyResult, page: Page) -> None:
    page.trainings(found)
    page.sweeps(found)
    for kind in found.labels[1:]:
        page.compare(found, kind, FIXED)
    shifts = [_shifts(outcome) for outcome in found.of(LEARNED)]
    moved = "; ".join(", ".join(f"{shift:+.3f}" for shift in one) for one in shifts)
    page.say(f"How far t_1, t_2, ... moved on the training loss, by seed: {moved}.")
    page.figures(*(_by_seed(found, metric) for metric in METRICS))
    page.figures(
        epoch_chart(found, "recall@20", "Validation Recall@20"), *times_charts(found, LEARNED)
    )


def _shifts(outcome: Outcome) -> list[float]:
    end = outcome.setting.config.model_options["end_time"]
    last = outcome.history[-1].times
    return [time - end * (i + 1) / (len(last) + 1) for i, time in enumerate(last)]


def _by_seed(found: StudyResult, metric: str) -> Chart:
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
    paper="Table 4",
    shows="fixed against learned times, with the spread over seeds",
    arms=arms,
    present=present,
)
