"""Figures 4 to 6: how LT-OCF and LightGCN train, and where the times go."""

from __future__ import annotations

from ltocf.studies.figures import Chart, Series
from ltocf.studies.outcomes import METRICS, Found
from ltocf.studies.plan import Plan, Setting, over_seeds
from ltocf.studies.report import Page, compare
from ltocf.studies.study import Study

OURS, THEIRS = "LT-OCF, learned times", "LightGCN, 3 layers"


def settings(plan: Plan) -> list[Setting]:
    return [*over_seeds(plan, OURS), *over_seeds(plan, THEIRS, "layers=3", model="lightgcn")]


def present(found: Found, page: Page) -> None:
    page.trainings(found)
    page.say(compare(OURS, found.test(OURS), THEIRS, found.test(THEIRS)))
    page.figures(
        epoch_chart(found, "loss", "Training loss", "BPR loss"),
        *(epoch_chart(found, metric, f"Validation {METRICS[metric]}") for metric in METRICS),
    )
    page.figures(*times_charts(found, OURS))


def epoch_chart(found: Found, what: str, title: str, y: str | None = None) -> Chart:
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


def times_charts(found: Found, label: str) -> list[Chart]:
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
    title = "learned on the training loss"
    return [
        Chart("times", f"Times {title}", "epoch", "time", places, whole_x=True),
        Chart("shifts", f"Shifts of the times {title}", "epoch", "shift", shifts, whole_x=True),
    ]


STUDY = Study(
    name="curves",
    paper="Figures 4 to 6",
    shows="loss, Recall, NDCG and times per epoch, LT-OCF against LightGCN",
    settings=settings,
    present=present,
)
