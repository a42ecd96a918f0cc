"""Section 4.1: the paper's training recipe beside ours, in about the same time."""

from __future__ import annotations

from ltocf.pictures.charts import Chart
from ltocf.studies.claims.solvers import seconds_chart
from ltocf.studies.outcomes import StudyResult, mean_spread
from ltocf.studies.plan import Arm, Plan, Setting
from ltocf.studies.report import Page
from ltocf.studies.study import Study

MODELS = {
    "LightGCN": ("lightgcn", ("layers=3",)),
    "LT-OCF, fixed": ("ltocf", ("learn_times=false",)),
    "LT-OCF, learned": ("ltocf", ()),
}
# From scratch: 1e-4 and 1e-5, as the paper has it, continue from a trained LightGCN.
PAPER = (
    "negatives=1", "sampling=uniform", "batch_size=2048", "draw_by=users", "learning_rate=0.001",
    "schedule=constant", "l2=1e-4", "start=random", "initial_std=0.1", "scale=natural",
)  # fmt: skip
PAPER_LTOCF = ("time_learning_rate=1e-6",)
PAPER_EPOCHS = 3  # take about as long as 12 of ours: each has eight times as many propagations


def arms(plan: Plan) -> list[Arm]:
    return [
        Arm(f"{label}, our recipe", options, model) for label, (model, options) in MODELS.items()
    ]


def settings(plan: Plan) -> list[Setting]:
    epochs = [] if plan.quick else [plan.epochs(PAPER_EPOCHS)]
    found = []
    for label, (model, options) in MODELS.items():
        own = PAPER_LTOCF if model == "ltocf" else ()
        config = plan.config(model, *options, *PAPER, *own, *epochs)
        found.append(Setting(f"{label}, paper's recipe", config))
    return found


def present(found: StudyResult, page: Page) -> None:
    page.trainings(found)
    for recipe in ("paper's", "our"):
        means = [mean_spread(found.test(f"{model}, {recipe} recipe"))[0] for model in MODELS]
        light, fixed, learned = means
        page.say(
            f"By {recipe} recipe: LT-OCF with learned times less LightGCN {learned - light:+.4f}, "
            f"learned less fixed times {learned - fixed:+.4f} (test Recall@20)."
        )
    page.figures(_chart(found))


def _chart(found: StudyResult) -> Chart:
    return seconds_chart(found, log=True)


STUDY = Study(
    name="recipes",
    paper="section 4.1",
    shows="the paper's recipe beside ours, in about the same time",
    arms=arms,
    settings=settings,
    present=present,
)
