"""Figures 6 to 8: how LT-OCF and LightGCN train, and where the times go."""

from __future__ import annotations

from ltocf.pictures.charts import Chart, Series
from ltocf.studies.outcomes import METRICS, StudyResult
from ltocf.studies.plan import Arm, Plan
from ltocf.studies.report import Page
from ltocf.studies.study import Study

OURS, FIXED, THEIRS = "LT-OCF, learned times", "LT-OCF, fixed times", "LightGCN, 3 layers"


def arms(plan: Plan) -> list[Arm]:
    return [
        Arm(OURS),
        Arm(FIXED, ("learn_times=false",)),
        Arm(THEIRS, ("layers=3",), model="lightgcn"),
    ]


def present(found: StudyResult, page: Page) -> None:
    page.trainings(found)
    page.sweeps(found)
    for ours in (OURS, FIXED):
        page.compare(found, ours, THEIRS)
    for label in found.labels:
        page.say(f"{label}: {_epochs_to(found, label, found.labels[-1])}")
    page.figures(
        epoch_chart(found, "loss", "Training loss", "BPR loss"),
        *(epoch_chart(found, metric, f"Validation {METRICS[metric]}") for metric in METRICS),
    )
    page.figures(*times_charts(found, OURS))


def epoch_chart(found: StudyResult, what: str, title: str, y: str | None = None) -> Chart:
    """A value of the history over the epochs, a line a label."""
    series = []
    for label in found.labels:
        histories = [
            [record for record in outcome.history if what == "loss" or record.metrics]
            for outcome in found.of(label)
        ]
        ys = [[r.loss if what == "loss" else r.metrics[what] for r in h] for h in histories]
        series.append(Series(label, [record.epoch for record in histories[0]], ys))
    name = what.replace("@20", "")
    return Chart(name, title, "epoch", y or METRICS[what], series, whole_x=True)


def times_charts(found: StudyResult, label: str) -> list[Chart]:
    """Where the times are, and how far they have gone, which is little beside it."""
    outcomes = found.of(label)
    count = len(outcomes[0].history[0].times)
    end = outcomes[0].setting.config.model_options["end_time"]
    epochs = [0, *(record.epoch for record in outcomes[0].history)]
    places, shifts = [], []
    for i in range(count):
        start = end * (i + 1) / (count + 1)
        ys = [[start, *(record.times[i] for record in o.history)] for o in outcomes]
        places.append(Series(f"$t_{i + 1}$", epochs, ys))
        shifts.append(Series(f"$t_{i + 1}$", epochs, [[y - start for y in one] for one in ys]))
    return [
        Chart("times", "Times learned in training", "epoch", "time", places, whole_x=True),
        Chart("shifts", "Shifts of the learned times", "epoch", "shift", shifts, whole_x=True),
    ]


def _epochs_to(found: StudyResult, label: str, bar: str) -> str:
    """How soon an arm passes another one's best validation Recall@20: who converges faster?"""
    best = min(found.valid(bar))
    reached = []
    for outcome in found.of(label):
        passed = [r.epoch for r in outcome.history if r.metrics.get("recall@20", 0.0) >= best]
        reached.append(str(passed[0]) if passed else "never")
    return f"reaches {bar}'s lowest best validation Recall@20 in epoch {', '.join(reached)}."


STUDY = Study(
    name="curves",
    paper="Figures 6 to 8",
    shows="loss, Recall, NDCG and times per epoch, LT-OCF against LightGCN",
    arms=arms,
    present=present,
)
