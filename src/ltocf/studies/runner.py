"""Trains what studies ask for, each setting once, and goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import json
import math
import time
from pathlib import Path
from typing import Any

from ltocf.errors import RunError
from ltocf.files import replacing
from ltocf.progress import Progress
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.run import Run
from ltocf.studies.estimates import duration, training_seconds
from ltocf.studies.outcomes import Found, Outcome
from ltocf.studies.plan import Plan, Setting
from ltocf.studies.report import write_config
from ltocf.studies.study import Study


class Runner:
    """OUTPUT/runs holds a run directory for every setting, named by what it was trained with: a
    setting of a second study, or of a second start, finds it there."""

    def __init__(self, output: Path, plan: Plan, progress: Progress) -> None:
        self.output, self.plan, self.progress = output, plan, progress
        self.n_pairs = len(plan.dataset.split.train)
        self.left: dict[str, float] = {}  # of each run that is not finished, estimated seconds
        self.total, self.started = 0.0, time.monotonic()

    def expect(self, settings: list[Setting]) -> None:
        """Count these trainings among the work to do, but for those that are finished."""
        for setting in settings:
            if setting.start_from:
                self.expect([setting.start_from])
            name = self.name_of(setting)
            if name not in self.left and not self._finished(name):
                self.left[name] = training_seconds(setting.config, self.n_pairs)
                self.total += self.left[name]

    def conduct(self, study: Study) -> Found:
        outcomes = [self.train(setting) for setting in study.settings(self.plan)]
        return Found(self.plan, outcomes, self._measure(study, outcomes))

    def train(self, setting: Setting) -> Outcome:
        """The setting's outcome: found, continued or trained from scratch."""
        first = self.train(setting.start_from) if setting.start_from else None
        name = self.name_of(setting)
        path = self.output / "runs" / name
        outcome = Outcome(setting, name, path)
        if not self._finished(name):
            run = self._open(path, setting, first)
            train_run(run, self._watch(name, setting))
            self._advance(name, 0.0, setting.label)
        write_config(outcome, self.output / "configs", f"runs/{first.name}" if first else None)
        return outcome

    def name_of(self, setting: Setting) -> str:
        config = setting.config
        return f"{config.model_name}-{config.seed}-{setting.digest(self.plan.fingerprint)}"

    def _finished(self, name: str) -> bool:
        return (self.output / "runs" / name / "metrics.json").is_file()

    def _open(self, path: Path, setting: Setting, first: Outcome | None) -> Run:
        if path.exists():
            return Run.open(path)
        config = setting.config.model_copy(
            update={"start_from": str(first.path) if first else None}
        )
        return start_run(config, path, dataset=self.plan.dataset)

    def _measure(self, study: Study, outcomes: list[Outcome]) -> dict[str, Any]:
        """What the study measured of these outcomes, now or at an earlier start."""
        names = json.dumps([outcome.name for outcome in outcomes])
        digest = hashlib.sha256(names.encode()).hexdigest()[:10]
        path = self.output / "runs" / f"{study.name}-{digest}.json"
        if path.is_file():
            return _read_json(path)
        self._tell(f"{study.name}: measuring")
        measured = study.measure(self.plan, outcomes)
        if measured:
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(measured, indent=1), encoding="utf-8")
        return measured

    def _watch(self, name: str, setting: Setting) -> Progress:
        """Of one training: takes its share of all work to be done evenly over its epochs."""
        expected = self.left.get(name, 0.0)

        def progress(stage: str, done: float, total: float | None = None, note: str = "") -> None:
            left, doing = self.left.get(name, 0.0), stage
            if stage.startswith("training") and total:
                left, doing = expected * (1 - done / total), f"epoch {math.ceil(done)}/{total:.0f}"
            self._advance(name, left, f"{setting.label}, {doing}")

        return progress

    def _advance(self, name: str, left: float, doing: str) -> None:
        """Note that of this training work of so many estimated seconds is left."""
        self.left[name] = left
        self._tell(doing)

    def _tell(self, doing: str) -> None:
        """The share that is done, and the time left if the rest goes as what was done."""
        left = sum(self.left.values())
        done = self.total - left
        share = done / self.total if self.total else 1.0
        # The first seconds tell little: there is a graph to build and kernels to compile.
        pace = (time.monotonic() - self.started) / done if done and share > 0.02 else 1.0
        self.progress(
            "studies", round(100 * share, 1), 100, f"{doing}, {duration(left * pace)} left"
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return values
    except ValueError:
        raise RunError(f"{path}: damaged; remove it to measure again") from None
