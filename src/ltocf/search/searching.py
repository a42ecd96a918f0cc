"""The search itself: the candidate with the largest expected gain per second comes next; the best
so far is always saved as a complete run.

Popularity is saved first, without a look at validation. Then candidates are tried in the order of
expected gain per second. Whenever one has improved, a new blend of the best is made. A model that
is judged better than the saved one is fitted to all pairs and saved in its place.
"""

from __future__ import annotations

import time
from dataclasses import replace

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.deadlines import Deadline
from ltocf.errors import LtocfError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import MODELS, build_model
from ltocf.models.base import Model
from ltocf.progress import OutOfTime, Progress, silent
from ltocf.ranking.metrics import testable_users
from ltocf.scorers.scorer import Scorer
from ltocf.search.arms import Arm
from ltocf.search.candidates import candidates_for, check_given
from ltocf.search.climbing import Options
from ltocf.search.costs import Costs
from ltocf.search.journal import Journal, Trial
from ltocf.search.judging import Judged, Judges
from ltocf.search.publishing import Choice, WholeModels
from ltocf.search.results import Keeper, Row, SearchResult, report
from ltocf.training.protocol import with_validation

FIRST = "popularity"
SHARE = 0.25  # the largest share of the time for saving, and for blending
LATER = 0.08  # the most gain expected of a closed form once another one has been judged
FEWEST = 3  # candidates to have before blending, while there is time for more of them
NEARNESS = 4  # the gain expected of an arm is multiplied by its ratio to the best, to this power
CARE = 1.3  # a factor on estimates of time, which are sometimes exceeded
# A trial may take this many times its estimate, and at least so many seconds.
PATIENCE, LEAST = 4.0, 10.0
FAR = 1.05  # a model this many times as good as the saved one is saved at once
SHORT = 5.0  # least seconds of which a share of time is computed
TESTING = 0.08  # the largest share of the time kept for the test, if need be on some users only
SAVING = 1.0  # seconds to write a version, until one was written


class Search:
    def __init__(
        self,
        dataset: Dataset,
        config: RunConfig,
        deadline: Deadline,
        *,
        journal: Journal | None = None,
        keeper: Keeper | None = None,
        progress: Progress = silent,
    ) -> None:
        check_given(config)
        self.config, self.deadline, self.progress = config, deadline, progress
        self.journal, self.keeper = journal or Journal(), keeper
        self.before = self.journal.elapsed  # of the searches that this one continues
        self.costs = Costs()
        self.whole = WholeModels(dataset, config, self.costs, self._on_train)
        self.split = with_validation(dataset.split, config.train, config.seed, fewest=1)
        self.judges = Judges(self.split, config.seed)
        graph = BipartiteGraph(self.split.train)
        self.arms = [
            Arm(name, self.split, graph, self.judges, config, self.journal, self.costs)
            for name in candidates_for(self.split, config)
        ]
        self.saving = SAVING
        self.blending, self.blended_at, self.stale = 0.0, deadline.elapsed, True
        self.saved_at = deadline.elapsed
        self.saved: Choice | None = None
        if self.keeper is not None and self.journal.saved:
            self.saved = Choice.restored(self.journal)
        blended = self.saved is not None and len(self.saved.trials) > 1
        self.blend: Choice | None = self.saved if blended else None
        self.members: list[Judged] = []  # of the blend
        self.model: Model | None = None
        self.doubted = False  # some users preferred what is saved to what was tried last

    @property
    def tried(self) -> list[Arm]:
        return [arm for arm in self.arms if arm.best is not None]

    @property
    def best(self) -> Choice | None:
        """The best on validation: one candidate, or a blend."""
        singles = [Choice.single(arm.best) for arm in self.arms if arm.best is not None]
        found = [*singles, *([self.blend] if self.blend else [])]
        return max(found, key=lambda choice: choice.merit, default=None)

    def run(self) -> SearchResult:
        """Search until the deadline, or until no trial is worthwhile any more."""
        try:
            self._save_first()
            while (arm := self._next()) is not None:
                self._try(arm)
                self._save(patient=True)  # before blending, which takes long
                self._blend(patient=True)
                self._save(patient=True)
        except OutOfTime:
            pass  # the best that could be saved is saved
        self._finish()
        assert self.model is not None and self.saved is not None
        config = self.saved.config(self.config)
        return SearchResult(config, self.whole.dataset, self.model, self.saved, self.rows())

    def left(self) -> float:
        """Seconds left for trials, without the time reserved for saving the best and testing it."""
        ahead = self.whole.seconds(*self._to_fit())
        return self.deadline.left - CARE * (ahead + self.saving) - self.testing()

    def _to_fit(self) -> tuple[Trial, ...]:
        """The trials that have to be fitted to all pairs for the best to be saved."""
        best = self.best
        return () if best is None or self._is_saved(best) else best.trials

    def testing(self) -> float:
        """Expected seconds of the test of the saved model, if there are test pairs."""
        test = self.whole.dataset.split.test
        if not len(test) or self.keeper is None:
            return 0.0
        members = [] if self.best is None else self.best.trials
        judging = sum(trial.judging_seconds for trial in members)
        seconds = judging * len(testable_users(test)) / max(len(self.judges.users), 1)
        return min(seconds, TESTING * self.deadline.seconds)

    @property
    def _opening(self) -> bool:
        """Whether the saved model was never judged."""
        return self.keeper is not None and self.saved is not None and not self.saved.merit

    def _is_saved(self, choice: Choice) -> bool:
        """Whether this, or something as good, is saved, trained on all pairs."""
        saved = self.saved
        return saved is not None and choice.merit <= saved.merit and not saved.provisional

    @property
    def _unjudged(self) -> Arm | None:
        """Popularity, as long as it is saved and doubts about what else was tried remain: nobody
        should get less than that, and to judge it takes a moment."""
        if not self.doubted or self.saved is None or self.saved.short != FIRST:
            return None
        unjudged = (arm for arm in self.arms if arm.name == FIRST and arm.open and not arm.best)
        return next(unjudged, None)

    def rows(self) -> list[Row]:
        return report(self.arms, self.journal, self.blend, self.blending, self.saved)

    def _next(self) -> Arm | None:
        """The candidate to try next: the largest expected gain per second among those that there is
        time for."""
        best, left = self.best, self.left()
        recency = self._recency()
        top = 0.0 if best is None else best.merit

        # A promise is relative to popularity. Once one closed form was judged, others gain little
        # more, and so do further settings of the best: the quickest come first.
        judged = any(arm.name != FIRST for arm in self.tried)

        def worth(arm: Arm) -> float:
            near = 1.0 if arm.best is None else min(arm.best.merit / max(top, 1e-9), 1.0)
            gain = min(arm.gain, LATER) if judged and MODELS[arm.name].solved() else arm.gain
            return gain * near**NEARNESS / max(arm.seconds(), 1e-3)

        for arm in self.arms:
            arm.begin(recency)
        possible = [arm for arm in self.arms if arm.open and self._fits(arm, left)]
        if (popularity := self._unjudged) in possible:
            return popularity
        return max(possible, key=worth, default=None)

    def _fits(self, arm: Arm, left: float) -> bool:
        """Whether there is time to try it and, if it is the best, to fit it to all pairs."""
        return CARE * (arm.seconds() + self._fit_after(arm)) <= left

    def _fit_after(self, arm: Arm) -> float:
        """Seconds that fitting what the arm tries next to all pairs adds to what is to be fitted
        anyway: none if it only weighs histories in another way."""
        next_ = Trial.unjudged(arm.name, arm.next or {})
        planned = self._to_fit()
        return self.whole.seconds(*planned, next_) - self.whole.seconds(*planned)

    def _recency(self) -> float:
        trials = [arm.best for arm in self.arms if arm.best is not None]
        liked = [trial for trial in trials if "recency" in trial.options]
        best = max(liked, key=lambda trial: trial.merit, default=None)
        return 0.0 if best is None else float(best.options["recency"])

    def _try(self, arm: Arm) -> None:
        saving = self._fit_after(arm) + self.saving if self._opening else 0.0
        limit = max(PATIENCE * (arm.seconds() + saving), LEAST)
        if not MODELS[arm.name].solved():
            # It moves on steadily and is worth little until its rate has fallen to zero, so it may
            # take all the time there is; as much again is for the fit to all pairs.
            limit = max(limit, self.left() / (1 + CARE))
        limit = min(limit, self.left() - self._fit_after(arm))
        self._tell(f"trying {arm.name}")
        before, told = arm.best, self._within(arm.name)
        try:
            arm.attempt(
                self.before + self.deadline.elapsed,
                self.deadline.limit(limit, told),
                self.deadline.limit(max(PATIENCE * arm.judging, LEAST), told),
                lambda options, scorer: self._glance(arm.name, options, scorer),
            )
        except OutOfTime:
            arm.stopped_after(limit)
        except (LtocfError, MemoryError) as error:
            arm.close(f"not tried: {error}")
        self.stale = self.stale or arm.best is not before

    def _blend(self, *, patient: bool) -> None:
        """A new blend of the best of each candidate, if one of them is new."""
        arms = self.tried
        fewest = FEWEST if patient else 2
        if not self.stale or len(arms) < fewest or not self.judges.halved:
            return
        since = self.deadline.elapsed - self.blended_at
        if patient and self.blending > SHARE * max(since, SHORT):
            return
        if self.blending * CARE > self.left():
            return
        started = time.perf_counter()
        self._tell("blending")
        try:
            with self.deadline.limit(max(self.left(), 0.0), self.progress) as progress:
                pool = self._pool(progress)
                members = {one.trial.key for one in self.members}
                firsts = [place for place, one in enumerate(pool) if one.trial.key in members]
                opinions = [one.opinion for one in pool]
                mix, judged = self.judges.blend(opinions, progress, firsts)
        except OutOfTime:
            return
        self.blending, self.stale = time.perf_counter() - started, False
        self.blended_at = self.deadline.elapsed
        trials = tuple(pool[member].trial for member in mix)
        figures = judged["recall@20"], judged["ndcg@20"]
        made = Choice(trials, tuple(mix.values()), *figures)
        if len(trials) > 1 and (self.blend is None or made.merit > self.blend.merit):
            self.blend, self.members = made, [pool[member] for member in mix]

    def _pool(self, progress: Progress) -> list[Judged]:
        """What a blend may be made of: the best of each candidate, and the members of the blend so
        far. What has become better alone may go less well with the others."""
        best = [Judged(_best(arm), arm.opinion(progress)) for arm in self.tried]
        known = {one.trial.key for one in best}
        return best + [one for one in self.members if one.trial.key not in known]

    def _save_first(self) -> None:
        """Save popularity, which takes a second, so that there is a usable run at once."""
        if self.saved is None and self.keeper is not None:
            self._keep(Choice.unjudged(FIRST, {}), self.progress)

    def _glance(self, name: str, options: Options, scorer: Scorer) -> None:
        """As long as the saved model was never judged, compare a new one with it on a few users and
        save the better one: a search that is stopped after ten seconds should give more than
        popularity."""
        if not self._opening or name == FIRST or not MODELS[name].solved():
            return  # how long to train on all pairs is known only once everybody has judged
        assert self.saved is not None
        graph, before = self.arms[0].graph, self.saved.model()
        shown = build_model(graph, before.pop("name"), before)
        shown.initialise_(self.config.seed)
        self.doubted = not self.judges.prefer(scorer, shown.scorer())
        if not self.doubted:
            with self.deadline.limit(self.deadline.left, self.progress) as progress:
                self._keep(Choice.unjudged(name, options), progress)

    def _save(self, *, patient: bool) -> None:
        """Save the best, unless it is saved. If `patient`, only if that takes a small part of the
        time, or if it is far better."""
        best, saved = self.best, self.saved
        if best is None or self._is_saved(best):
            return
        again = saved is not None and best.model() == saved.model()
        if again and saved is not None and not saved.provisional:
            self.saved = best  # it was saved before it was judged
            return
        if self._unjudged is not None:
            return
        if patient and self.keeper is None:
            return  # there is nowhere to save it before the end
        # A training on all pairs may take longer than the time that was reserved for it, or be
        # interrupted, so something is saved before it.
        if not again and self.whole.untrained(best):
            self._save_one(replace(best, provisional=True), patient)
        self._save_one(best, patient)

    def _save_one(self, choice: Choice, patient: bool) -> None:
        since = self.deadline.elapsed - self.saved_at
        # A far better model is saved at once. So is the first judged one: until then, `saved` is
        # popularity, with a merit of 0.
        far = self.saved is None or choice.merit > FAR * self.saved.merit
        seconds = CARE * (self.whole.seconds_for(choice) + self.saving)
        if patient and not far and seconds > SHARE * max(since, SHORT):
            return
        self._tell(f"saving {choice.short}")
        tested = self.testing() if self.saved is not None else 0.0
        limit = max(self.deadline.left - tested, 0.0)
        with self.deadline.limit(limit, self.progress) as progress:
            self._keep(choice, progress)

    def _keep(self, choice: Choice, progress: Progress) -> None:
        model = self.whole.fit(choice, progress)
        started = time.perf_counter()
        if self.keeper is not None:
            config = choice.config(self.config)
            self.keeper.save(choice, config, self.whole.dataset, model)
            self.saving = time.perf_counter() - started
        self.saved, self.model = choice, model
        self.saved_at = self.deadline.elapsed

    def _finish(self) -> None:
        """The last blend and the last version, in the time that was reserved for them."""
        try:
            self._save(patient=False)
            self._blend(patient=False)
            self._save(patient=False)
        except OutOfTime:
            pass
        if self.model is None and self.keeper is not None and self.saved is not None:
            self.model = self.keeper.load()  # an earlier search has saved it
        if self.model is None:  # with a tiny budget
            self._keep(self.best or Choice.unjudged(FIRST, {}), silent)

    def _within(self, name: str) -> Progress:
        def told(stage: str, done: float, total: float | None = None, note: str = "") -> None:
            self._tell(f"trying {name}: {stage} {note}".strip())

        return told

    def _on_train(self, trial: Trial) -> Model:
        (arm,) = [arm for arm in self.arms if arm.name == trial.name]
        return arm.trained(trial)

    def _tell(self, doing: str) -> None:
        best = self.best
        shown = f"best so far {best.short} {best.recall:.4f}" if best else "nothing judged yet"
        note = f"{shown}; {doing}"
        self.progress("searching", self.deadline.elapsed, self.deadline.seconds, note)


def _best(arm: Arm) -> Trial:
    assert arm.best is not None
    return arm.best
