"""Trains what studies ask for, each setting once, and goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ltocf.errors import CheckpointError
from ltocf.files import replacing
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.run import Run
from ltocf.runs.training import EpochRecord
from ltocf.studies.estimates import training_seconds
from ltocf.studies.outcomes import Found, Outcome
from ltocf.studies.plan import Plan, Setting
from ltocf.studies.report import write_config
from ltocf.studies.study import Study

# what is being done, the share of all work that is done, the seconds left
Watch = Callable[[str, float, float], None]


class Runner:
    """OUTPUT/runs holds a run directory for every setting, named by what it was trained with: a
    setting of a second study, or of a second start, finds it there."""

    def __init__(self, output: Path, plan: Plan, watch: Watch) -> None:
        self.output, self.plan, self.watch = output, plan, watch
        self.n_pairs = len(plan.dataset.split.train)
        self.left: dict[str, float] = {}  # of each run that is not finished, estimated seconds
        self.total, self.done, self.started = 0.0, 0.0, time.monotonic()

    def expect(self, settings: list[Setting]) -> None:
        """Count these trainings among the work to do, but for those that are finished."""
        for setting in settings:
            if setting.init:
                self.expect([setting.init])
            name = self.name_of(setting)
            if name not in self.left and not self._finished(name):
                self.left[name] = training_seconds(setting.config, self.n_pairs)
                self.total += self.left[name]

    def conduct(self, study: Study) -> Found:
        outcomes = [self.train(setting) for setting in study.settings(self.plan)]
        return Found(self.plan, outcomes, self._measure(study, outcomes))

    def train(self, setting: Setting) -> Outcome:
        """The setting's outcome: found, continued or trained from scratch."""
        first = self.train(setting.init) if setting.init else None
        name = self.name_of(setting)
        path = self.output / "runs" / name
        outcome = Outcome(setting, name, path)
        if not self._finished(name):
            run = self._open(path, setting, first)
            train_run(run, _Epochs(self, name, setting))
            self._advance(name, self.left.get(name, 0.0), setting.label)
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
        init = str(first.path) if first else None
        config = setting.config.model_copy(update={"init": init})
        return start_run(config, path, dataset=self.plan.dataset)

    def _measure(self, study: Study, outcomes: list[Outcome]) -> dict[str, Any]:
        """What the study measured of these outcomes, now or at an earlier start."""
        names = json.dumps([outcome.name for outcome in outcomes])
        digest = hashlib.sha256(names.encode()).hexdigest()[:10]
        path = self.output / "runs" / f"{study.name}-{digest}.json"
        if path.is_file():
            return _read_json(path)
        self.watch(f"{study.name}: measuring", *self._progress())
        measured = study.measure(self.plan, outcomes)
        if measured:
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(measured, indent=1), encoding="utf-8")
        return measured

    def _advance(self, name: str, seconds: float, label: str) -> None:
        """Note that work of this many estimated seconds is done."""
        seconds = min(seconds, self.left.get(name, 0.0))
        self.left[name] = self.left.get(name, 0.0) - seconds
        self.done += seconds
        self.watch(label, *self._progress())

    def _progress(self) -> tuple[float, float]:
        """The share done, and the seconds left if the rest goes as what was done."""
        left = max(self.total - self.done, 0.0)
        pace = (time.monotonic() - self.started) / self.done if self.done else 1.0
        return self.done / self.total if self.total else 1.0, left * pace


class _Epochs:
    """Tells the runner of every finished epoch of one training."""

    def __init__(self, runner: Runner, name: str, setting: Setting) -> None:
        self.runner, self.name, self.setting = runner, name, setting
        self.each = runner.left.get(name, 0.0) / max(setting.config.train.epochs, 1)

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        pass

    def epoch(self, record: EpochRecord, best_epoch: int) -> None:
        label = f"{self.setting.label}, epoch {record.epoch}/{self.setting.config.train.epochs}"
        self.runner._advance(self.name, self.each, label)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return values
    except ValueError:
        raise CheckpointError(f"{path}: damaged; remove it to measure again") from None
