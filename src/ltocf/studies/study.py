"""What a study is: what to train, and what to say and draw of the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ltocf.data.dataset import Dataset
from ltocf.studies.outcomes import Outcome, StudyResult
from ltocf.studies.plan import Arm, Plan, Setting
from ltocf.studies.report import Page


def _no_measure(plan: Plan, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Study:
    """`arms` are compared with each other, each at the learning rate that suits it and over several
    seeds; `settings` are trained once, as they are. `measure` may look at the data and the trained
    models; what it returns is kept as JSON."""

    name: str
    paper: str  # where the paper has it
    shows: str
    present: Callable[[StudyResult, Page], None]
    arms: Callable[[Plan], list[Arm]] = lambda plan: []
    settings: Callable[[Plan], list[Setting]] = lambda plan: []
    measure: Callable[[Plan, Sequence[Outcome]], dict[str, Any]] = _no_measure
    extra_seconds: Callable[[Plan], float] = lambda plan: 0.0  # that measuring takes, about

    def lacks(self, dataset: Dataset) -> str | None:
        """What the data set would need for this study, if it has not got it."""
        split = dataset.split
        if not len(split.test):
            return "test pairs; prepare it with a split"
        if not len(split.valid) and split.seen.user_degrees.max() < 2:
            return "a user with two training pairs, of which one could be held out"
        return None
