"""One candidate of a search: its settings improve trial by trial, and its best fit is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from hashlib import blake2b
from pathlib import Path

from safetensors.torch import load_file, save_file

from ltocf.config import RunConfig
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import MODELS, build_model
from ltocf.models.base import Model
from ltocf.progress import Progress
from ltocf.scorers.scorer import Scorer
from ltocf.search.candidates import QUICK, choices_for, promise_of, starts_of, usual_options
from ltocf.search.climbing import Options, ascend
from ltocf.search.costs import Costs, task_of
from ltocf.search.journal import Journal, Trial
from ltocf.search.judging import Judges
from ltocf.search.mixing import Opinion
from ltocf.search.trainings import trained_on_validation, with_other_histories
from ltocf.storage.files import replacing
from ltocf.training.fitting import require_room

ANOTHER_START = 0.05  # expected gain of a candidate's second start over its first, as a share
FIRST_STEP = 0.02  # average gain of a candidate's first change of a setting, as a share
WORTH = 3e-4  # a smaller expected gain is not worth a trial
NEWS = 0.5  # weight of the latest trial in the expected gain of the next
STOPS = 4  # trials that take too long, after which a candidate is given up

Fitted = Callable[[Options, Scorer], None]


class Arm:
    """One candidate: its best trial so far, what it would try next, and the gain that is expected
    of it."""

    def __init__(
        self,
        name: str,
        split: Split,
        graph: BipartiteGraph,
        judges: Judges,
        config: RunConfig,
        journal: Journal,
        costs: Costs,
    ) -> None:
        self.name, self.config = name, config
        self.split, self.graph, self.judges = split, graph, judges
        self.journal, self.costs = journal, costs
        self.gain = promise_of(name, split, config)
        self.note = ""  # why it is not tried any more
        self._stops = 0
        self._stopped_after = 0.0  # seconds, if the next trial was tried before
        self._slow: list[Options] = []  # settings that took too long twice
        self._starts = 0  # starts that have not been tried
        self.best: Trial | None = None
        self.next: Options | None = None
        self._opinion: Opinion | None = None
        self._model: Model | None = None  # that of the best
        self._trained: dict[str, Model] = {}  # all trained models of this search
        self._steps: Generator[Options, float, None] | None = None
        earlier = [trial for trial in journal.trials.values() if trial.name == name]
        if earlier:
            self._go_on(earlier)

    @property
    def open(self) -> bool:
        return not self.note and (self._steps is None or self.next is not None)

    @property
    def why_not(self) -> str:
        """Why nothing was judged."""
        if self.note or not self._stopped_after:
            return self.note or "not tried: no time left"
        return f"stopped after {self._stopped_after:.0f} seconds"

    def seconds(self) -> float:
        """The expected seconds of the next trial."""
        usual = self.judging + (0.0 if self._only_recency() else self._fitting())
        return max(usual, 2 * self._stopped_after)

    @property
    def judging(self) -> float:
        """The part of them for validation."""
        return self.costs.judging if self.best is None else self.best.judging_seconds

    def _fitting(self) -> float:
        options = self.next or {}
        if self.best is not None and self._task(options) == self._task(self.best.options):
            return self.best.seconds
        return self.costs.fitting(self.name, options, self.split.train)

    def _task(self, options: Options) -> str:
        return task_of(self.name, usual_options(self.name) | options)

    def begin(self, recency: float) -> None:
        """Choose the first settings, with the recency that is best for other candidates. Until one
        is tried they are chosen anew, since others find out about recency only meanwhile."""
        if self.best is None:
            self._climb_from(starts_of(self.name, self.config, recency, self.split.train))

    def attempt(
        self,
        elapsed: float,
        fitting: AbstractContextManager[Progress],
        judging: AbstractContextManager[Progress],
        fitted: Fitted = lambda options, scorer: None,
    ) -> Trial:
        """Fit and judge the next settings, record the trial, and choose the settings after it.
        `fitted` is called between fit and judgement, since judging may take longer than fitting.
        The two have separate time limits: a training that reaches its limit still has to be
        judged."""
        assert self.next is not None
        options, started = self.next, time.perf_counter()
        quick = self._only_recency()
        with fitting as progress:
            model, scorer, epochs = (self._reweighed if quick else self._fitted)(options, progress)
        seconds = time.perf_counter() - started
        fitted(options, scorer)
        begun = time.perf_counter()
        with judging as progress:
            rating = self.judges.rate(scorer, progress)
        judging_seconds = time.perf_counter() - begun
        if not quick:
            self.costs.learn(self.name, options, self.split.train, seconds)
        self.costs.judging = judging_seconds
        judged = rating.metrics["recall@20"], rating.metrics["ndcg@20"]
        kept = self.best.seconds if quick and self.best is not None else seconds
        trial = Trial(
            self.name, options, *judged, kept, judging_seconds,
            elapsed + seconds + judging_seconds, epochs,
        )  # fmt: skip
        if not quick and not MODELS[self.name].solved():
            self._keep(trial, model)
        if self._learn(trial, quick=quick):
            self._model, self._opinion = model, rating.opinion
        self.journal.add_trial(trial)
        self._stopped_after = 0.0
        self._advance(trial.merit)
        return trial

    def opinion(self, progress: Progress) -> Opinion:
        """The opinion of the model with the best settings. In a resumed search, that model is
        fitted again or read from its file."""
        assert self.best is not None
        if self._opinion is None:
            self._opinion = self.judges.rate(self.model(progress).scorer(), progress).opinion
        return self._opinion

    def model(self, progress: Progress) -> Model:
        """The model with the best settings, fitted to train."""
        assert self.best is not None
        if self._model is None:
            if MODELS[self.name].solved():
                self._model = self._fitted(self.best.options, progress)[0]
            else:
                trained, options = self.trained(self.best), self.best.options
                self._model = with_other_histories(trained, self.graph, self.name, options)
        return self._model

    def trained(self, trial: Trial) -> Model:
        """The model of a trial, trained on train, perhaps with another recency. A resumed search
        reads it from its file."""
        if trial.fit_key not in self._trained:
            model = build_model(self.graph, self.name, trial.options)
            model.restore_(load_file(self._file(trial)))
            self._trained[trial.fit_key] = model
        return self._trained[trial.fit_key]

    def close(self, note: str) -> None:
        self.note = note

    def stopped_after(self, seconds: float) -> None:
        """Note that a trial took too long. It may have spent its time compiling, or other programs
        kept the machine busy, so it gets a second chance later, with more time. After that, other
        settings are tried."""
        self._stops += 1
        self.costs.learn(self.name, self.next or {}, self.split.train, 2 * seconds)
        if not self._stopped_after:
            self._stopped_after = seconds
        elif self.best is None or self._stops >= STOPS:
            self.close(f"stopped after {seconds:.0f} seconds")
        else:
            self._slow.append(self.next or {})
            self._stopped_after = 0.0
            self._advance(-math.inf)

    def _learn(self, trial: Trial, *, quick: bool) -> bool:
        """Update the expected gain. Returns whether the trial is the best so far."""
        before = self.best
        self._starts -= not quick
        if self._starts > 0:
            self.gain = ANOTHER_START
        elif before is None or (self._starts == 0 and not quick):
            self.gain = FIRST_STEP
        else:
            risen = max(trial.merit / max(before.merit, 1e-9) - 1, 0.0)
            self.gain = (1 - NEWS) * self.gain + NEWS * risen
        better = before is None or trial.merit > before.merit
        if better:
            self.best = trial
        return better

    def _fitted(self, options: Options, progress: Progress) -> tuple[Model, Scorer, int | None]:
        if not MODELS[self.name].solved():
            found = trained_on_validation(self.name, options, self.split, self.config, progress)
            return found.model, found.model.scorer(), found.epochs
        model = build_model(self.graph, self.name, options)
        require_room(model)
        progress("fitting", 0, None, self.name)
        model.report = progress
        model.initialise_(self.config.seed)
        return model, model.scorer(), None

    def _reweighed(self, options: Options, progress: Progress) -> tuple[Model, Scorer, int | None]:
        """The best model so far with another recency."""
        assert self.best is not None
        model = self.model(progress)
        scorer = self.opinion(progress).scorer.with_recency(float(options.get("recency", 0.0)))
        if scorer is None:
            model = with_other_histories(model, self.graph, self.name, options)
            scorer = model.scorer()
        return model, scorer, self.best.epochs

    def _keep(self, trial: Trial, model: Model) -> None:
        """Keep a trained model; save it too, so that a resumed search need not train it again."""
        self._trained[trial.fit_key] = model
        if self.journal.file is not None:
            with replacing(self._file(trial)) as temporary:
                save_file(
                    {k: v.detach().contiguous() for k, v in model.fitted_state().items()}, temporary
                )

    def _file(self, trial: Trial) -> Path:
        assert self.journal.file is not None
        digest = blake2b(trial.fit_key.encode(), digest_size=4).hexdigest()
        return self.journal.file.parent / f"{self.name}-{digest}.safetensors"

    def _only_recency(self) -> bool:
        """Whether the next trial only changes the recency of the best, which needs no new fit."""
        if self.best is None or self.next is None:
            return False
        return _without_recency(self.best.options) == _without_recency(self.next)

    def _climb_from(self, starts: list[Options]) -> None:
        choices = choices_for(self.name, self.config, self.split)
        self._starts = len(starts)
        self._steps = ascend(starts, choices, usual_options(self.name), quick=QUICK)
        self._advance(None)

    def _advance(self, merit: float | None) -> None:
        """Go to the next settings that have not been tried; None if there are none."""
        assert self._steps is not None
        try:
            self.next = next(self._steps) if merit is None else self._steps.send(merit)
            while (known := self._known(self.next)) is not None:
                self.next = self._steps.send(known)
        except StopIteration:
            self.next = None
        if self.best is not None and self.gain < WORTH:
            self.next = None  # further changes would gain next to nothing

    def _known(self, options: Options) -> float | None:
        """The merit of settings that were tried."""
        if options in self._slow:
            return -math.inf
        trial = self.journal.find(self.name, options)
        return None if trial is None else trial.merit

    def _go_on(self, earlier: list[Trial]) -> None:
        self.best = max(earlier, key=lambda trial: trial.merit)
        self.gain = FIRST_STEP
        self.costs.learn(self.name, self.best.options, self.split.train, self.best.seconds)
        self.costs.judging = self.best.judging_seconds
        recency = float(earlier[0].options.get("recency", 0.0))
        self._climb_from(starts_of(self.name, self.config, recency, self.split.train))


def _without_recency(options: Options) -> Options:
    return {key: value for key, value in options.items() if key != "recency"}
