"""fit(): cutting, choosing the epoch and the times, learning from all pairs; nothing twice."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx
from torch import Tensor

from ltocf.config import BPR, RunConfig, TrainConfig
from ltocf.data.dataset import Dataset
from ltocf.data.sources.town import make_town
from ltocf.models.base import Model
from ltocf.models.ltocf import LTOCF
from ltocf.models.times_lesson import DEEPEST
from ltocf.progress import OutOfTime
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.run import Run
from ltocf.training.fitting import choose_epochs, cut_for, fit, fit_for
from ltocf.training.records import EpochRecord, TrainState
from ltocf.training.trainer import Trainer

TOWN = make_town(300, 120).dataset
TRAIN = TrainConfig(epochs=4, batch_size=1024, validation=0.4)


def config(model: dict[str, object] | None = None, **train: object) -> RunConfig:
    return RunConfig(
        model={"name": "ltocf", "dim": 8, "end_time": 4.0} | (model or {}),
        loss=BPR(negatives=4),
        train=TRAIN.model_copy(update=train),
    )


def same(one: Model, other: Model) -> bool:
    pairs = zip(one.fitted_state().items(), other.fitted_state().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


class Watch:
    """Counts the epochs of each stage."""

    def __init__(self) -> None:
        self.epochs: dict[str, int] = {}

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        if note and float(done).is_integer():
            self.epochs[stage] = self.epochs.get(stage, 0) + 1


def test_after_one_lesson_settled_times_stay_fixed_and_training_restarts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch()
    monkeypatch.setattr("ltocf.models.times_lesson.SETTLED", 100.0)  # whatever they did, it is near
    monkeypatch.setattr("ltocf.models.times_lesson.DEEPEST", 100.0)
    fitted = fit(TOWN, config(refit=False), progress=watch)
    learned = fitted.model.extracted_times()
    assert learned != approx([1, 2, 3])
    assert all(record.times == learned for record in fitted.records)
    assert watch.epochs == {"training": 2 + len(fitted.records)}


def test_a_lesson_after_which_times_have_moved_far_is_given_again_from_the_start() -> None:
    watch = Watch()
    fitted = fit(TOWN, config({"end_time": 1.0}, refit=False), progress=watch)
    given_up = watch.epochs["training"] - len(fitted.records)
    assert given_up >= 2 and given_up % 2 == 0
    assert [record.epoch for record in fitted.records] == [1, 2, 3, 4]


def test_all_times_learn_the_end_time_among_them() -> None:
    chosen = choose_epochs(TOWN, config({"end_time": 0.5}))
    assert isinstance(chosen.model, LTOCF)
    times = chosen.model.times().tolist()
    assert times == sorted(times)
    assert not np.isclose(times[1:], [0.125, 0.25, 0.375, 0.5]).any()
    assert int(chosen.model.lesson.left) < 5  # type: ignore[union-attr]


def test_times_rest_after_the_lesson() -> None:
    chosen = choose_epochs(TOWN, config())
    times = [record.times for record in chosen.records]
    assert times[1] == times[2] == times[3] == chosen.model.extracted_times()
    assert times[1] != approx([1, 2, 3])


@pytest.mark.parametrize("deep_is_better", [True, False])
def test_times_that_run_away_stop_and_must_be_better_than_those_given(
    monkeypatch: pytest.MonkeyPatch, deep_is_better: bool
) -> None:
    learn = LTOCF.held_out_loss

    def shallow_is_bad(self: LTOCF, *arguments: Any) -> Tensor:
        return 0 * learn(self, *arguments) - self.times()[-1]

    def validate(self: Trainer, *arguments: Any) -> tuple[dict[str, float], int]:
        assert isinstance(self.model, LTOCF)
        deep = self.model.times.end > 5
        recall = 0.3 if deep == deep_is_better else 0.2
        return {"recall@20": recall, "ndcg@20": 0.1}, 0

    monkeypatch.setattr("ltocf.models.times_lesson.TIME_RATE", 1.0)
    monkeypatch.setattr(LTOCF, "held_out_loss", shallow_is_bad)
    monkeypatch.setattr(Trainer, "validate", validate)
    watch = Watch()
    model = choose_epochs(TOWN, config({"popularity": 0}), progress=watch).model
    assert isinstance(model, LTOCF)
    assert model.times.end == approx(DEEPEST if deep_is_better else 4.0)
    # A lesson, a trial of each, and the training, which the second trial is if it wins.
    assert watch.epochs == {"training": 2 + 2 + 2 + 4 if deep_is_better else 2 + 2 + 4}


def test_times_that_start_too_deep_are_first_pulled_back_to_the_deepest_allowed() -> None:
    model = LTOCF(fit(TOWN, config(epochs=0)).model.graph, LTOCF.Config(dim=8, end_time=48.0))
    assert model.times().tolist() == approx(np.linspace(0, DEEPEST, 5))


def test_what_was_learned_on_held_out_pairs_goes_into_the_fit_on_all_pairs() -> None:
    fitted = fit(TOWN, config())
    split = fitted.dataset.split
    assert len(fitted.model.graph.interactions) == len(split.seen)
    thinner = (len(split.train) / len(split.seen)) ** (1 / 3)  # more pairs, less depth
    learned = [thinner * time for time in fitted.records[-1].times]
    assert fitted.model.extracted_times() == approx(learned)
    only_train = fit(TOWN, config(refit=False))
    assert len(only_train.model.graph.interactions) == len(split.train)


def test_choosing_epochs_and_fitting_for_them_is_what_fit_does() -> None:
    whole = fit(TOWN, config())
    chosen = choose_epochs(TOWN, config())
    assert len(chosen.model.graph.interactions) == len(chosen.dataset.split.train)
    second = fit_for(chosen.epochs, chosen.dataset, config(), like=chosen.model)
    assert same(second.model, whole.model)
    assert whole.epochs == chosen.epochs
    assert [r.metrics for r in whole.records] == [r.metrics for r in chosen.records]


def test_a_data_set_is_cut_inside_and_one_that_is_cut_keeps_its_cut() -> None:
    cut = cut_for(config(), TOWN)
    assert len(cut.split.valid)
    assert same(fit(TOWN, config()).model, fit(cut, config()).model)


def test_closed_forms_are_solved_on_everything_and_the_first_half_on_train() -> None:
    ease = RunConfig(model={"name": "ease"})
    whole = fit(TOWN, ease)
    assert len(whole.model.graph.interactions) == len(TOWN.split.seen)
    assert not len(whole.dataset.split.valid) and whole.epochs is None
    half = choose_epochs(TOWN, ease)
    assert len(half.model.graph.interactions) == len(half.dataset.split.train)
    assert len(half.dataset.split.valid)


@pytest.mark.parametrize("train", [{}, {"protocol": "fixed"}], ids=["validation", "fixed"])
def test_a_fit_interrupted_after_any_epoch_of_any_stage_goes_on_bit_for_bit(
    train: dict[str, object],
) -> None:
    settings = config({"end_time": 2.0}, **train)
    states = list[TrainState]()

    def remember(state: TrainState, record: EpochRecord) -> None:
        copies = {name: tensor.clone() for name, tensor in state.tensors.items()}
        states.append(TrainState(**(asdict(state) | {"tensors": copies})))

    whole = fit(TOWN, settings, after_epoch=remember)
    stages = [state.stage for state in states]
    assert set(stages) == ({"times", "choosing"} if train else {"choosing", "all pairs"})
    assert any(state.epoch == 0 for state in states)  # a lesson after which training began anew
    for state in states[:: 1 + len(states) // 5]:
        assert same(fit(TOWN, settings, state=state).model, whole.model), state.stage


def test_what_a_run_starts_from_is_where_its_fit_on_all_pairs_starts_after_a_resume(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start_run(config(refit=False, epochs=1), tmp_path / "first", dataset=TOWN)
    train_run(first)
    settings = config(epochs=2).model_copy(update={"start_from": str(first.path)})
    train_run(start_run(settings, tmp_path / "whole", dataset=TOWN))
    run = start_run(settings, tmp_path / "stopped", dataset=TOWN)
    saved = Run.save_state

    def stop(self: Run, state: TrainState) -> None:
        saved(self, state)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Run, "save_state", stop)
        train_run(run)
    train_run(Run.open(run.path))
    assert same(Run.open(run.path).load(), Run.open(tmp_path / "whole").load())


def out_of_time_after(epochs: int, stage_of_it: str = "training") -> Any:
    def progress(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        if stage == stage_of_it and done > epochs:
            raise OutOfTime

    return progress


def test_out_of_time_leaves_the_best_epoch_so_far() -> None:
    settings = config({"learn_times": False})
    whole = fit(TOWN, settings)
    stopped = fit(TOWN, settings, progress=out_of_time_after(2))
    assert whole.complete and not stopped.complete
    assert [r.metrics for r in stopped.records] == [r.metrics for r in whole.records[:2]]
    fewer = fit(TOWN, config({"learn_times": False}, refit=False, patience=1), state=None)
    assert len(stopped.model.graph.interactions) == len(fewer.model.graph.interactions)


def test_out_of_time_in_the_second_half_leaves_the_first() -> None:
    settings = config({"learn_times": False})
    stopped = fit(TOWN, settings, progress=out_of_time_after(1, "training on all pairs"))
    assert not stopped.complete
    assert same(stopped.model, choose_epochs(TOWN, settings).model)


def test_out_of_time_goes_through_a_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def solve(self: Model, seed: int) -> dict[str, Tensor]:
        self.report("solving", 1)
        return {}

    def at_once(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        raise OutOfTime

    monkeypatch.setattr("ltocf.models.ease.EASE.solve", solve)
    with pytest.raises(OutOfTime):
        fit(TOWN, RunConfig(model={"name": "ease"}), progress=at_once)


def test_progress_is_called_at_every_step_and_every_tile() -> None:
    calls = list[str]()

    def progress(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        calls.append(stage)

    fitted = fit(TOWN, config({"learn_times": False}), progress=progress)
    steps = -(-len(fitted.dataset.split.train) // 1024)
    assert calls.count("training") >= 4 * (steps + 1)


def test_a_run_keeps_the_times_and_all_pairs(tmp_path: Any) -> None:
    run = start_run(config({"end_time": 2.0}), tmp_path / "run", dataset=TOWN)
    train_run(run)
    model = Run.open(run.path).load()
    assert isinstance(model, LTOCF)
    assert model.times.end != approx(2.0)
    assert len(model.graph.interactions) == len(TOWN.split.seen)


def test_with_a_fixed_schedule_times_are_learned_on_a_separate_cut() -> None:
    fitted = fit(TOWN, config({"end_time": 2.0}, protocol="fixed"))
    data: Dataset = fitted.dataset
    assert not len(data.split.valid)
    assert len(fitted.model.graph.interactions) == len(TOWN.split.seen)
    assert fitted.model.extracted_times() != approx([0.5, 1.0, 1.5])
