"""The search, on data where the right answer is known, in this process."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from ltocf.config import BPR, RunConfig, TrainConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.deadlines import Deadline, parse_seconds, usual_seconds
from ltocf.errors import ConfigError
from ltocf.models.base import Model
from ltocf.models.rp3beta import RP3Beta
from ltocf.progress import OutOfTime, Progress, silent
from ltocf.recommend.recommender import Recommender
from ltocf.runs.yardsticks import verdict
from ltocf.search import candidates, searching
from ltocf.search.candidates import (
    CANDIDATES,
    GIVEN_TIMES,
    RECENCIES,
    SHORT,
    Candidate,
    loss_settings,
    promise_of,
    starts_of,
    train_settings,
)
from ltocf.search.climbing import Options
from ltocf.search.costs import Costs
from ltocf.search.journal import Journal, Trial
from ltocf.search.mixing import Opinion, fit_mix, pooled
from ltocf.search.publishing import Choice
from ltocf.search.searching import FIRST, Search
from ltocf.search.trainings import trained_on_validation

AUTO = RunConfig(model={"name": "auto"})


class Kept:
    """Where the versions of a search go, for a test to look at."""

    def __init__(self) -> None:
        self.choices: list[Choice] = []
        self.models: list[Model] = []

    def save(self, choice: Choice, config: RunConfig, dataset: Dataset, model: Model) -> None:
        self.choices.append(choice)
        self.models.append(model)

    def load(self) -> Model:
        return self.models[-1]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three candidates that take no time."""
    only(monkeypatch, "popularity", "rp3beta", "gfcf")


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in list(CANDIDATES):
        if name not in names:
            monkeypatch.delitem(CANDIDATES, name)


def test_versions_get_better_and_the_last_is_never_below_a_yardstick(
    hamlet: Dataset, few: None
) -> None:
    kept = Kept()
    found = Search(hamlet, AUTO, Deadline(600), keeper=kept).run()
    assert kept.choices[0].short == "popularity"
    merits = [choice.merit for choice in kept.choices]
    assert merits == sorted(merits)
    assert found.choice.merit >= max(
        (row.recall or 0) + (row.ndcg or 0) for row in found.rows if " + " not in row.tried
    )
    assert {row.tried.split()[0] for row in found.rows} >= {"popularity", "rp3beta", "gfcf"}
    assert sum(row.note.startswith("chosen") for row in found.rows) == 1
    assert found.model is kept.models[-1]
    assert found.model.people.fingerprint == hamlet.split.seen.fingerprint  # tags aside


@pytest.mark.parametrize(("times", "versions"), [(1.01, 1), (1.2, 2)])
def test_what_is_far_better_is_saved_at_once(
    hamlet: Dataset, few: None, times: float, versions: int
) -> None:
    kept = Kept()
    search = Search(hamlet, AUTO, Deadline(600), keeper=kept)
    before = Trial("popularity", {}, 0.1, 0.1, 0.0, 0.0, 0.0)
    search._keep(Choice.single(before), silent)
    search.saving = 60.0  # by far more than a quarter of the time since then
    (arm,) = [arm for arm in search.arms if arm.name == "rp3beta"]
    arm.best = replace(before, name="rp3beta", recall=times * 0.1, ndcg=times * 0.1)
    search._save(patient=True)
    assert len(kept.choices) == versions


@pytest.mark.parametrize(("preferred", "saved"), [(True, "rp3beta"), (False, "popularity")])
def test_what_a_few_users_prefer_is_saved_before_everybody_judges_it(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch, preferred: bool, saved: str
) -> None:
    only(monkeypatch, "rp3beta")
    kept = Kept()
    search = Search(hamlet, AUTO, Deadline(600), keeper=kept)
    monkeypatch.setattr(search.judges, "prefer", lambda scorer, other: preferred)
    at_first: list[str] = []
    rate = search.judges.rate

    def noted(*arguments: Any) -> Any:
        at_first.append(kept.choices[-1].short)
        return rate(*arguments)

    monkeypatch.setattr(search.judges, "rate", noted)
    search.run()
    assert at_first[0] == saved
    assert len(kept.choices) == len({choice.label for choice in kept.choices})  # none twice


def test_what_is_trained_is_not_saved_before_everybody_has_judged_it(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(hamlet, AUTO, Deadline(600), keeper=Kept())
    search._save_first()
    monkeypatch.setattr(search.judges, "prefer", lambda scorer, other: True)
    assert search.model is not None
    search._glance("ltocf", {}, search.model.scorer())
    assert search.saved is not None
    assert search.saved.short == FIRST


@pytest.mark.parametrize("most", [1, 2])
def test_nobody_gets_less_than_popularity_that_was_not_judged_yet(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """It is judged next, as soon as some users prefer it; without the time for that it stays."""
    only(monkeypatch, "popularity", "rp3beta")
    kept, journal = Kept(), Journal()
    search = Search(hamlet, AUTO, Deadline(600), keeper=kept, journal=journal)
    monkeypatch.setattr(search.judges, "prefer", lambda scorer, other: False)
    after = search._next
    monkeypatch.setattr(search, "_next", lambda: after() if len(journal.trials) < most else None)
    found = search.run()
    assert [trial.name for trial in journal.trials.values()] == ["rp3beta", "popularity"][:most]
    if most == 1:
        assert [choice.short for choice in kept.choices] == [found.choice.short] == [FIRST]
    else:
        assert found.choice.merit == max(trial.merit for trial in journal.trials.values())


def test_a_few_users_prefer_what_finds_more_of_what_they_have(hamlet: Dataset) -> None:
    search = Search(hamlet, AUTO, Deadline(600))
    seen = search.split.valid

    def right(users: Any) -> Any:
        return np.stack(
            [np.bincount(seen.items_of(user), minlength=seen.n_items) for user in users]
        )

    def wrong(users: Any) -> Any:
        return -right(users)

    assert search.judges.prefer(right, wrong) and not search.judges.prefer(wrong, right)  # type: ignore[arg-type]


def test_where_ease_can_be_solved_its_sparse_form_promises_little(hamlet: Dataset) -> None:
    assert promise_of("sparse_ease", hamlet.split, AUTO) < 0.2 * CANDIDATES["sparse_ease"].promise
    assert promise_of("ease", hamlet.split, AUTO) == CANDIDATES["ease"].promise


def test_what_has_nothing_to_solve_is_tried_first(hamlet: Dataset, few: None) -> None:
    journal = Journal()
    Search(hamlet, AUTO, Deadline(600), journal=journal).run()
    assert next(iter(journal.trials.values())).label == "gfcf ideal_weight=0"


def test_a_filter_of_the_graph_costs_less_without_its_singular_vectors(hamlet: Dataset) -> None:
    costs, pairs = Costs(), hamlet.split.train
    costs.learn("gfcf", {}, pairs, 50.0)
    costs.learn("gfcf", {"ideal_weight": 0.0}, pairs, 0.1)
    assert costs.fitting("gfcf", {}, pairs) == 50.0
    assert costs.fitting("gfcf", {"ideal_weight": 0.0}, pairs) == 0.1


def test_weights_of_a_blend_are_judged_by_users_they_were_not_fitted_to(
    hamlet: Dataset, few: None
) -> None:
    search = Search(hamlet, AUTO, Deadline(600))
    search.run()
    opinions = [arm.opinion(silent) for arm in search.tried]
    judges, valid = search.judges, search.split.valid
    mix, figures = judges.blend(opinions)
    pool = pooled(opinions, judges.users, valid)
    halves = pool.of(judges.half), pool.of(~judges.half)
    found = [half.metrics(fit_mix(other)) for half, other in (halves, halves[::-1])]
    shares = [len(half.n_wanted) / len(judges.users) for half in halves]
    for name, figure in figures.items():
        assert figure == pytest.approx(np.dot(shares, [metrics[name] for metrics in found]))
    assert mix == fit_mix(pool)
    assert search.blend is None or len(search.blend.trials) > 1


def test_a_blend_of_one_member_is_no_blend(hamlet: Dataset, few: None) -> None:
    """It is that member, whose own figures are the ones that everybody judged."""
    search = Search(hamlet, AUTO, Deadline(600))
    search.judges.blend = lambda *_: ({0: 1.0}, {"recall@20": 0.99, "ndcg@20": 0.99})  # type: ignore[method-assign]
    found = search.run()
    assert search.blend is None
    assert all(row.recall != 0.99 for row in found.rows)


def test_a_setting_holds_for_every_candidate_that_has_it(hamlet: Dataset, few: None) -> None:
    config = RunConfig(model={"name": "auto", "recency": 0.4})
    rows = Search(hamlet, config, Deadline(600)).run().rows
    alone = [row.tried for row in rows if " + " not in row.tried]
    assert all("recency=0.4" in tried for tried in alone if not tried.startswith("popularity"))
    with pytest.raises(ConfigError, match="unknown key 'tempo'"):
        Search(hamlet, RunConfig(model={"name": "auto", "tempo": 1}), Deadline(0))


def test_without_time_there_is_still_a_model(hamlet: Dataset) -> None:
    found = Search(hamlet, AUTO, Deadline(0)).run()
    assert found.config.model_name == "popularity"
    assert all(row.note == "not tried: no time left" for row in found.rows)


def test_a_search_goes_on_where_another_was_ended(
    hamlet: Dataset, few: None, tmp_path: Path
) -> None:
    whole = Journal(tmp_path / "whole.jsonl")
    Search(hamlet, AUTO, Deadline(600), journal=whole).run()
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_text("".join(lines[:4]) + lines[4][:20])
    journal = Journal(tmp_path / "cut.jsonl")
    assert len(journal.trials) == 4
    before = max(trial.merit for trial in journal.trials.values())
    # What it comes to depends on the order of the trials, and so on how long each took.
    assert Search(hamlet, AUTO, Deadline(600), journal=journal).run().choice.merit >= before
    written = (tmp_path / "cut.jsonl").read_text().splitlines()
    assert written[:4] == [line.rstrip("\n") for line in lines[:4]]
    keys = [key for key in Journal(tmp_path / "cut.jsonl").trials]
    assert len(keys) == len(written) > 4  # it went on, and nothing was tried twice


def test_a_candidate_that_takes_too_long_is_stopped_and_the_others_go_on(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "popularity", "rp3beta", "gfcf")
    monkeypatch.setattr("ltocf.search.searching.LEAST", 0.2)

    def forever(self: RP3Beta, seed: int) -> dict[str, Any]:
        while True:
            pass

    monkeypatch.setattr(RP3Beta, "solve", forever)
    found = Search(hamlet, AUTO, Deadline(60, alarms=True)).run()
    notes = {row.tried.split()[0]: row.note for row in found.rows}
    assert notes["rp3beta"].startswith("stopped after")
    assert found.choice.short != "rp3beta"


def test_settings_that_take_too_long_are_tried_again_and_then_passed_over_for_others(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(hamlet, AUTO, Deadline(60))
    (arm,) = (arm for arm in search.arms if arm.name == "rp3beta")
    arm.begin(0.0)
    search._try(arm)
    slow = arm.next
    arm.stopped_after(10.0)
    assert arm.open
    assert arm.next == slow
    assert arm.seconds() == 20.0  # the next attempt gets more time
    arm.stopped_after(80.0)
    assert arm.open
    assert arm.next not in (None, slow)
    search._try(arm)
    assert arm.seconds() < 20.0
    assert slow not in [trial.options for trial in search.journal.trials.values()]
    for _ in range(2):
        arm.stopped_after(10.0)
    assert arm.note == "stopped after 10 seconds"


def test_a_model_that_does_not_fit_is_passed_over(
    hamlet: Dataset, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RP3Beta, "bytes_to_fit", lambda self: 1e18)
    rows = Search(hamlet, AUTO, Deadline(600)).run().rows
    (note,) = [row.note for row in rows if row.tried == "rp3beta"]
    assert "GB of memory" in note


def test_recency_is_chosen_where_people_move(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "popularity", "rp3beta", "gfcf")
    draw = np.random.default_rng(0)
    moves = []  # each one takes ten items of one district of twenty, then ten of another
    for user in range(150):
        for half, district in enumerate(draw.choice(12, 2, replace=False)):
            for step, item in enumerate(draw.choice(20, 10, replace=False)):
                moves.append((user, 20 * district + item, 10 * half + step))
    users, items, times = np.array(moves).T
    train = Interactions.build(users, items, 150, 240, times)
    nothing = train.select(np.zeros(len(train), bool))
    data = Dataset("moves", Split(train, nothing, nothing))
    best = Search(data, AUTO, Deadline(600)).run().choice.trials[0]
    assert best.options["recency"] in RECENCIES[1:]


def test_a_training_begins_with_the_recency_that_closed_forms_like(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only(monkeypatch, "popularity", "rp3beta", "ltocf")
    users = np.repeat(np.arange(60), 6)
    items, times = np.random.default_rng(0).integers(0, 20, 360), np.tile(np.arange(6), 60)
    train = Interactions.build(users, items, 60, 20, times)
    nothing = train.select(np.zeros(len(train), bool))
    search = Search(Dataset("timed", Split(train, nothing, nothing)), AUTO, Deadline(60))
    (closed, trained) = [arm for arm in search.arms if arm.name != "popularity"]
    assert (closed.name, trained.name) == ("rp3beta", "ltocf")
    for recency in (0.0, 0.7):  # as others are judged meanwhile
        for arm in search.arms:
            arm.begin(recency)
    assert trained.next is not None and trained.next["recency"] == 0.7
    closed.best = Trial("rp3beta", {"recency": 0.7}, 0.1, 0.1, 1.0, 1.0, 1.0)
    before = closed.next
    closed.begin(0.2)
    assert closed.next == before  # it climbs from where it stands


def test_a_candidate_of_orders_is_for_logs_with_an_order(hamlet: Dataset) -> None:
    assert CANDIDATES["transitions"].ordered
    timeless = replace(hamlet.split.train, timestamps=None)
    split = Split(timeless, timeless.select(np.zeros(len(timeless), bool)), hamlet.split.test)
    assert "transitions" not in set(candidates.candidates_for(split, AUTO))
    assert isinstance(CANDIDATES["ltocf"], Candidate)


@pytest.mark.parametrize(("recency", "counts"), [(0, False), (0.4, True), (None, True)])
def test_without_recency_the_order_of_a_history_counts_in_no_candidate(
    hamlet: Dataset, recency: float | None, counts: bool
) -> None:
    given = {} if recency is None else {"recency": recency}
    config, split = RunConfig(model={"name": "auto", **given}), hamlet.split
    assert ("transitions" in set(candidates.candidates_for(split, config))) == counts
    assert ("recent" in candidates.choices_for("popularity", config, split)) == counts


def test_fitting_again_searches_again(hamlet: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    other = CANDIDATES["rp3beta"]
    only(monkeypatch, "popularity")
    recommender = Recommender(budget=60).fit(hamlet)
    assert recommender.config.model_name == "popularity"
    monkeypatch.delitem(CANDIDATES, "popularity")
    monkeypatch.setitem(CANDIDATES, "rp3beta", other)
    recommender.fit(hamlet)
    assert recommender.config.model_name == "rp3beta"  # found, not kept
    assert recommender.get_params()["budget"] == 60


def test_a_deadline_stops_work_whether_or_not_it_reports_progress() -> None:
    with pytest.raises(OutOfTime), Deadline(600).limit(0, silent) as progress:
        progress("working", 0)
    with pytest.raises(OutOfTime), Deadline(0.05, alarms=True).limit(60, silent):
        while True:
            pass


def test_a_stop_waits_until_a_kernel_is_compiled() -> None:
    @numba.njit
    def total(numbers):  # type: ignore[no-untyped-def]
        return numbers.sum()

    with pytest.raises(OutOfTime), Deadline(0.001, alarms=True).limit(60, silent):
        total(np.ones(3))
        while True:
            pass
    assert total.signatures  # compiled, though its time was up before it began


def test_a_stop_waits_until_a_thread_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = threading._start_new_thread  # type: ignore[attr-defined]

    def slowly(*arguments: Any) -> Any:
        begun = begin(*arguments)
        time.sleep(0.05)  # its time is up meanwhile
        return begun

    monkeypatch.setattr(threading, "_start_new_thread", slowly)
    thread = threading.Thread(target=lambda: None)
    with pytest.raises(OutOfTime), Deadline(0.01, alarms=True).limit(60, silent):
        thread.start()
        while True:
            pass
    thread.join()  # it ran, and nothing was thrown in it


def test_a_stop_waits_until_a_library_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it may be there for good: torch cannot be loaded a second time."""
    (tmp_path / "slow_library.py").write_text("import time\ntime.sleep(0.3)\nloaded = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OutOfTime), Deadline(0.05, alarms=True).limit(60, silent):
        import slow_library  # type: ignore[import-not-found]

        while True:
            pass
    assert slow_library.loaded


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("2.5s", 2.5), ("10m", 600), ("1h", 3600)]
)
def test_a_budget_is_in_seconds_minutes_or_hours(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


def test_the_usual_budget_grows_with_the_data() -> None:
    budgets = [usual_seconds(pairs) for pairs in (1000, 100_000, 1_000_000, 10**8)]
    assert budgets == sorted(budgets) and budgets[-1] == 3600


def test_a_run_is_compared_with_models_that_take_seconds() -> None:
    ours = {"recall@20": 0.2}
    others = {"popularity": {"recall@20": 0.1}, "ease": {"recall@20": 0.19}}
    line = "for comparison, Recall@20 of models that take seconds: popularity 0.1000, ease 0.1900"
    assert verdict(ours, others) == line
    better = others | {"ease": {"recall@20": 0.21}}
    assert verdict(ours, better).endswith(
        "a search (ltocf train without --model) would probably do better than this run"
    )


def test_a_training_that_its_limit_ends_counts_with_its_best_epoch(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "popularity", "ltocf")
    monkeypatch.setattr(searching, "PATIENCE", 0.0)
    monkeypatch.setattr(searching, "LEAST", 0.2)

    def endless(name: str, options: Options, split: Split, config: RunConfig, progress: Progress):  # type: ignore[no-untyped-def]
        brief = config.train.model_copy(update={"epochs": 1})
        found = trained_on_validation(
            name, options, split, config.model_copy(update={"train": brief}), silent
        )
        with pytest.raises(OutOfTime):
            while True:
                progress("training", 0)
        return found

    monkeypatch.setattr("ltocf.search.arms.trained_on_validation", endless)
    search = Search(hamlet, AUTO, Deadline(8))
    search.run()
    assert "ltocf" in {trial.name for trial in search.journal.trials.values()}


def test_members_of_the_blend_stay_available_when_something_else_is_better_alone(
    hamlet: Dataset, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(hamlet, AUTO, Deadline(60))
    for arm in search.arms:
        arm.begin(0.0)
        search._try(arm)
    offered: list[int] = []
    begun: list[list[int]] = []

    def blend(opinions: list[Opinion], progress: Progress, firsts: list[int]) -> Any:
        offered.append(len(opinions))
        begun.append(firsts)
        members = {0: 1.0, 1: 0.5} if len(offered) == 1 else {1: 1.0, len(opinions) - 1: 0.5}
        return members, {"recall@20": 0.1 * len(offered), "ndcg@20": 0.1}

    monkeypatch.setattr(search.judges, "blend", blend)
    search._blend(patient=False)
    first = search.arms[0]
    assert first.best is not None and search.blend is not None
    before = first.best
    first.best = replace(before, options={"recent": 0.3}, recall=before.recall + 0.01)
    search.stale = True
    search._blend(patient=False)
    assert offered == [3, 4]
    assert begun == [[], [1, 3]]
    assert search.blend.trials == (search.arms[1].best, before)


def test_recency_of_a_trained_model_is_chosen_without_training_it_again(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "popularity", "ltocf")
    trained: list[Options] = []

    def brief(name: str, options: Options, split: Split, config: RunConfig, progress: Progress):  # type: ignore[no-untyped-def]
        trained.append(options)
        short = config.train.model_copy(update={"epochs": 1})
        config = config.model_copy(update={"train": short})
        return trained_on_validation(name, options, split, config, silent)

    monkeypatch.setattr("ltocf.search.arms.trained_on_validation", brief)
    search = Search(hamlet, AUTO, Deadline(60))
    (arm,) = [arm for arm in search.arms if arm.name == "ltocf"]
    arm.begin(0.0)
    assert search._fit_after(arm) > 0
    search._try(arm)
    assert search._fit_after(arm) == 0  # another recency, for which no time has to be left
    search.run()
    trials = [trial for trial in search.journal.trials.values() if trial.name == "ltocf"]
    recencies = {trial.options.get("recency", 0.0) for trial in trials}
    assert len(recencies) > 1 and len(trained) < len(trials)
    assert len(trained) == len({str(options | {"recency": 0}) for options in trained})
    best = max(trials, key=lambda trial: trial.merit)
    judged = search.judges.rate(arm.model(silent).scorer()).metrics
    assert judged["recall@20"] == best.recall and judged["ndcg@20"] == best.ndcg


def test_a_training_that_takes_longer_than_expected_is_not_cut_short(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rate falls to zero at the end, until when it is worth little."""
    only(monkeypatch, "popularity", "ltocf")
    monkeypatch.setattr(searching, "PATIENCE", 0.0)
    monkeypatch.setattr(searching, "LEAST", 0.1)
    whole: list[bool] = []

    def slow(name: str, options: Options, split: Split, config: RunConfig, progress: Progress):  # type: ignore[no-untyped-def]
        found = trained_on_validation(name, options, split, config, silent)
        until = time.perf_counter() + 0.5
        try:
            while time.perf_counter() < until:
                progress("training", 0)
            whole.append(True)
        except OutOfTime:
            whole.append(False)
        return found

    monkeypatch.setattr("ltocf.search.arms.trained_on_validation", slow)
    Search(hamlet, AUTO, Deadline(30)).run()
    assert whole
    assert all(whole)


def test_singular_vectors_from_the_cache_do_not_change_the_estimate_of_speed(
    hamlet: Dataset,
) -> None:
    costs, pairs = Costs(), hamlet.split.train
    for name in ("gfcf", "chebycf", "bspm"):
        costs.learn(name, {}, pairs, 1e-3)
    assert costs.slowness == 1.0
    assert costs.fitting("ltocf", {}, pairs) == Costs().fitting("ltocf", {}, pairs)


def test_given_times_are_trained_for_fewer_epochs_unless_epochs_are_set() -> None:
    asked = TrainConfig()
    assert train_settings({}, asked, 30.0) == asked
    assert asked.epochs_for(30.0) == 30
    assert train_settings({"learn_times": False}, asked, 30.0).epochs == SHORT
    assert train_settings({"learn_times": False}, asked, 112.0).epochs == 8  # as by itself
    told = TrainConfig(epochs=20)
    assert train_settings({"learn_times": False}, told, 30.0) == told


def test_ltocf_costs_a_third_with_given_times(hamlet: Dataset) -> None:
    costs, pairs = Costs(), hamlet.split.train
    assert costs.fitting("ltocf", {"learn_times": False}, pairs) < costs.fitting("ltocf", {}, pairs)
    costs.learn("ltocf", {"learn_times": False}, pairs, 7.0)
    assert costs.fitting("ltocf", {"learn_times": False, "recency": 1.0}, pairs) == 7.0
    assert costs.fitting("ltocf", {}, pairs) != 7.0


def test_ltocf_is_first_tried_with_given_times() -> None:
    dense = of_degree(18)
    first, second = starts_of("ltocf", RunConfig(), 0.0, dense)
    assert first == GIVEN_TIMES
    assert second == {}
    given = RunConfig(model={"name": "ltocf", "learn_times": "training"})
    starts = starts_of("ltocf", given, 0.0, dense)
    assert all(start["learn_times"] == "training" for start in starts)


def test_ltocf_learns_its_times_where_its_training_is_short_anyway() -> None:
    assert starts_of("ltocf", RunConfig(), 0.0, of_degree(20)) == [GIVEN_TIMES, {}]
    users, items = np.divmod(np.arange(20 * 60), 60)
    assert starts_of("ltocf", RunConfig(), 0.0, Interactions.build(users, items, 20, 60)) == [{}]


def test_cosines_and_softmax_come_first_where_users_and_items_have_few_pairs() -> None:
    first, *others = starts_of("ltocf", RunConfig(), 0.0, of_degree(6))
    assert first == GIVEN_TIMES | {"normalise": True}
    assert others == starts_of("ltocf", RunConfig(), 0.0, of_degree(18))
    found = loss_settings(first, RunConfig())
    assert (found["loss"].name, found["train"].learning_rate) == ("softmax", 3e-3)
    assert loss_settings({}, RunConfig()) == {"loss": BPR(), "train": TrainConfig()}
    told = RunConfig(loss=BPR(negatives=7), train=TrainConfig(learning_rate=0.1))
    assert loss_settings(first, told) == {"loss": told.loss, "train": told.train}
    told = RunConfig(train=TrainConfig(learning_rate=0.1))
    assert loss_settings(first, told)["train"] == told.train


def test_what_is_saved_says_with_which_loss_it_was_trained() -> None:
    cosines = Trial("ltocf", {"normalise": True}, 0.2, 0.1, 1.0, 1.0, 1.0, epochs=7)
    other = Trial("gfcf", {}, 0.2, 0.1, 1.0, 1.0, 1.0)
    for trials in ((cosines,), (other, cosines)):
        config = Choice(trials, (1.0,) * len(trials), 0.2, 0.1).config(AUTO)
        assert (config.loss.name, config.train.epochs) == ("softmax", 7)
        assert config.train.learning_rate == 3e-3
    assert Choice.single(other).config(AUTO).loss == BPR()


def of_degree(n: int) -> Interactions:
    """20 users and items with n pairs each."""
    users, places = np.divmod(np.arange(20 * n), n)
    return Interactions.build(users, (users + places) % 20, 20, 20)
