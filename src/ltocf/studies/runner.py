"""Trains what studies ask for, each setting once, and goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ltocf.errors import RunError
from ltocf.models.ltocf import LTOCF
from ltocf.progress import Progress
from ltocf.ranking.metrics import PerUser, evaluate_users
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.run import Run
from ltocf.storage.files import replacing
from ltocf.studies.estimates import duration, training_seconds
from ltocf.studies.outcomes import METRICS, Outcome, RateTrial, StudyResult
from ltocf.studies.plan import Arm, Plan, Setting
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

    def expect(self, study: Study) -> None:
        """Count a study's trainings among the work to do, but for those that are finished.

        What an arm's further seeds will be trained with is not known before its sweep, nor what a
        sweep with nested times will: they are counted under another name until they begin."""
        for setting in study.settings(self.plan):
            self._count(setting)
        for arm in study.arms(self.plan):
            if arm.nested_times:
                self._count(self.plan.time_search(arm))
            for place, rate in self._usual_rates(arm):
                later = _trial_name(arm, place) if arm.nested_times or place > 1 else None
                self._count(self.plan.trial(arm, rate), later)
            for seed in self.plan.all_seeds[1:]:
                self._count(self.plan.trial(arm, 1.0, seed), f"{arm.label}, seed {seed}")

    def _usual_rates(self, arm: Arm) -> list[tuple[int, float]]:
        """Numbered, those that an arm is tried with unless its best rate is far off."""
        first = self.plan.first_rate
        return list(enumerate(self.plan.rates(arm)[first : first + self.plan.usual_trials]))

    def _count(self, setting: Setting, name: str | None = None) -> None:
        if setting.start_from:
            self._count(setting.start_from)
        name = name or self.name_of(setting)
        if name not in self.left and not self._finished(name):
            self.left[name] = training_seconds(setting.config, self.n_pairs)
            self.total += self.left[name]

    def conduct(self, study: Study) -> StudyResult:
        outcomes = [self.train(setting) for setting in study.settings(self.plan)]
        sweeps: dict[str, list[RateTrial]] = {}
        for arm in study.arms(self.plan):
            trained, sweeps[arm.label] = self._over_seeds(arm)
            outcomes += trained
        measured = self._measure(study, outcomes)
        return StudyResult(self.plan, outcomes, measured, sweeps, self.per_user)

    def _over_seeds(self, arm: Arm) -> tuple[list[Outcome], list[RateTrial]]:
        """An arm at the learning rate that validation prefers with the first seed, once a seed."""
        times = self._nested_times(arm) if arm.nested_times else ()
        rates, tried = self.plan.rates(arm), dict[int, Outcome]()

        def recall(place: int) -> float:
            if place not in tried:
                setting = self.plan.trial(arm, rates[place], times=times)
                tried[place] = self._train_counted(_trial_name(arm, len(tried)), setting)
            best = tried[place].best
            return best.metrics["recall@20"] if best else 0.0

        chosen = climb(recall, self.plan.first_rate, len(rates))
        for place, _ in self._usual_rates(arm):
            self.left.pop(_trial_name(arm, place), None)  # that were not needed
        outcomes = [tried[chosen]]
        for seed in self.plan.all_seeds[1:]:
            setting = self.plan.trial(arm, rates[chosen], seed, times)
            outcomes.append(self._train_counted(f"{arm.label}, seed {seed}", setting))
        return outcomes, [RateTrial(rates[place], recall(place)) for place in sorted(tried)]

    def _train_counted(self, counted_as: str, setting: Setting) -> Outcome:
        """Train what was counted under another name before its settings were known."""
        expected, name = self.left.pop(counted_as, 0.0), self.name_of(setting)
        if expected and not self._finished(name):
            self.left[name] = expected
        return self.train(setting)

    def _nested_times(self, arm: Arm) -> list[str]:
        """The times that a training on fewer pairs found, as settings of one on all of them."""
        model = self.train(self.plan.time_search(arm)).model()
        assert isinstance(model, LTOCF)  # only its times learn
        _, *inner, end = model.times().tolist()
        return [f"times={inner}", f"end_time={end}", "learn_times=false"]

    def per_user(self, outcome: Outcome) -> PerUser:
        """Test metrics of each user, computed once and kept beside the runs."""
        path = self.output / "users" / f"{outcome.name}.npy"
        if not path.is_file():
            self._tell(f"{outcome.setting.label}: ranking for each user")
            split = self.plan.dataset.split
            values, _ = evaluate_users(outcome.scorer(), split.test, split.seen)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary, temporary.open("wb") as file:
                np.save(file, np.stack([values[name] for name in METRICS]))
        return dict(zip(METRICS, np.load(path), strict=True))

    def train(self, setting: Setting) -> Outcome:
        """The setting's outcome: found, continued or trained from scratch."""
        first = self.train(setting.start_from) if setting.start_from else None
        name = self.name_of(setting)
        path = self.output / "runs" / name
        outcome = Outcome(setting, name, path)
        if not self._finished(name):
            run = self._open(path, setting, first)
            # A study has pictures of its own; nobody looks at those of its hundred runs.
            train_run(run, self._watch(name, setting), curves=False)
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
        dataset = self.plan.nested_dataset if setting.nested else self.plan.dataset
        return start_run(config, path, dataset=dataset)

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


def climb(value: Callable[[int], float], first: int, n: int) -> int:
    """The place among 0..n-1 from which `value` falls to either side, found from `first` and the
    one after it; an end of the range if it still rises there."""
    step = 1 if value(first + 1) > value(first) else -1
    place = max(first, first + step)
    while 0 <= place + step < n and value(place + step) > value(place):
        place += step
    return place


def _trial_name(arm: Arm, number: int) -> str:
    """What a training of a sweep is counted as before its learning rate is known."""
    return f"{arm.label}, trial {number + 1}"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return values
    except ValueError:
        raise RunError(f"{path}: damaged; remove it to measure again") from None
