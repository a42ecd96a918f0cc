"""What a search leaves behind: the model, and a report of what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.models.base import Model
from ltocf.search.arms import Arm
from ltocf.search.journal import Journal, Trial
from ltocf.search.publishing import Choice

CHOSEN = "chosen: the best on validation"


class Keeper(Protocol):
    """Where a search saves its models, each replacing the one before."""

    def save(self, choice: Choice, config: RunConfig, dataset: Dataset, model: Model) -> None: ...

    def load(self) -> Model:
        """What was saved last."""


@dataclass(frozen=True)
class Row:
    """A line of the report: the best of one candidate, or a blend, as the judges found it."""

    tried: str
    seconds: float
    recall: float | None
    ndcg: float | None
    note: str = ""


@dataclass(frozen=True)
class SearchResult:
    config: RunConfig
    dataset: Dataset
    model: Model
    choice: Choice
    rows: list[Row]

    def as_json(self) -> list[dict[str, object]]:
        return [asdict(row) for row in self.rows]


def report(
    arms: Sequence[Arm],
    journal: Journal,
    blend: Choice | None,
    blending_seconds: float,
    saved: Choice | None,
) -> list[Row]:
    """The best of each candidate, the best first, and what was not tried and why; a blend above."""
    rows = []
    for best, arm in sorted(_tried(arms), key=lambda pair: -pair[0].merit):
        mine = [trial for trial in journal.trials.values() if trial.name == arm.name]
        seconds = sum(trial.seconds + trial.judging_seconds for trial in mine)
        chosen = saved is not None and saved.trials == (best,)
        rows.append(
            Row(best.label, seconds, best.recall, best.ndcg, CHOSEN if chosen else arm.note)
        )
    for arm in arms:
        if arm.best is None:
            rows.append(Row(arm.name, 0.0, None, None, arm.why_not))
    if blend is not None:
        if saved is not None and blend.model() == saved.model():
            note = CHOSEN
        elif saved is not None and blend.merit > saved.merit:
            note = "better, but there was no time to fit it to all pairs"
        else:
            note = "no better than the best alone"
        rows.insert(0, Row(blend.label, blending_seconds, blend.recall, blend.ndcg, note))
    return rows


def _tried(arms: Sequence[Arm]) -> list[tuple[Trial, Arm]]:
    return [(arm.best, arm) for arm in arms if arm.best is not None]
