"""What came out of a study's trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltocf.models.base import Model
from ltocf.ranking.metrics import Metrics, PerUser
from ltocf.runs.run import Run
from ltocf.scorers.scorer import Scorer
from ltocf.studies.plan import Plan, Setting
from ltocf.training.records import EpochRecord

METRICS = {"recall@20": "Recall@20", "ndcg@20": "NDCG@20"}


@dataclass(frozen=True)
class Outcome:
    """A finished training."""

    setting: Setting
    name: str  # of its run directory and of its config among the report's files
    path: Path

    @cached_property
    def history(self) -> list[EpochRecord]:
        return self._run.history()

    @cached_property
    def test(self) -> Metrics:
        return self._run.metrics()

    @cached_property
    def _run(self) -> Run:
        return Run.open(self.path)

    @property
    def seed(self) -> int:
        return self.setting.config.seed

    @property
    def best(self) -> EpochRecord | None:
        """The epoch whose weights were kept; none where the last one was kept unseen."""
        evaluated = [record for record in self.history if record.metrics]
        return max(evaluated, key=lambda r: r.metrics["recall@20"], default=None)

    @property
    def seconds(self) -> float:
        return sum(record.seconds for record in self.history)

    def model(self) -> Model:
        return self._run.load()

    def scorer(self) -> Scorer:
        return self.model().scorer()


class RateTrial(NamedTuple):
    """A learning rate that an arm was tried with, and the best validation Recall@20 it came to."""

    rate: float
    recall: float


@dataclass(frozen=True)
class StudyResult:
    """What came out of a study: its trainings by label, and what it measured besides."""

    plan: Plan
    outcomes: Sequence[Outcome]
    measured: Mapping[str, Any] = field(default_factory=dict)
    sweeps: Mapping[str, Sequence[RateTrial]] = field(default_factory=dict)  # by label
    users: Callable[[Outcome], PerUser] | None = None  # test metrics of each user

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(outcome.setting.label for outcome in self.outcomes))

    def of(self, label: str) -> list[Outcome]:
        """One outcome a seed."""
        return [outcome for outcome in self.outcomes if outcome.setting.label == label]

    def test(self, label: str, metric: str = "recall@20") -> list[float]:
        return [outcome.test[metric] for outcome in self.of(label)]

    def valid(self, label: str, metric: str = "recall@20") -> list[float]:
        best = [outcome.best for outcome in self.of(label)]
        return [record.metrics[metric] for record in best if record is not None]

    def per_user(self, label: str) -> PerUser:
        """Test metrics of each user, averaged over the seeds."""
        assert self.users is not None
        found = [self.users(outcome) for outcome in self.of(label)]
        return {name: np.mean([one[name] for one in found], axis=0) for name in METRICS}


def mean_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation; one value has no spread, written as 0."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
