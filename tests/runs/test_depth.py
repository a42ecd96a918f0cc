"""Times that learn on held-out pairs, and the fit on all pairs that follows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pytest import MonkeyPatch, approx
from torch.testing import assert_close

from ltocf.config import BPR, RunConfig, TrainConfig
from ltocf.data.dataset import Dataset
from ltocf.data.sources.town import make_town
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.ltocf import LTOCF
from ltocf.ode.times import TimePoints
from ltocf.runs import depth
from ltocf.runs.depth import USUAL_DEPTH, Gaps, learn_depth_
from ltocf.runs.fitting import cut_for, fit
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.records import EpochRecord
from ltocf.runs.run import Run
from ltocf.runs.validation import with_validation

TOWN = make_town(300, 120).dataset
TRAIN = TrainConfig(epochs=3, batch_size=1024, validation=0.4)


def config(**train: object) -> RunConfig:
    return RunConfig(
        model={"name": "ltocf", "dim": 8, "end_time": 1.0},
        loss=BPR(negatives=4),
        train=TRAIN.model_copy(update=train),
    )


def test_gaps_are_times_in_order_whatever_their_logarithms_are() -> None:
    times = torch.tensor([0.0, 0.5, 2.0, 2.25], dtype=torch.float64)
    gaps = Gaps(times)
    assert_close(gaps().detach(), times)
    with torch.no_grad():
        gaps.logs.normal_(0, 3)
    assert (gaps().diff() > 0).all()


def test_all_times_learn_the_end_time_among_them() -> None:
    split = with_validation(TOWN.split, TRAIN, 0)
    model = LTOCF(BipartiteGraph(split.train), LTOCF.Config(dim=8, end_time=0.5))
    learn_depth_(model, split.valid, TRAIN, BPR(negatives=4), seed=0)
    times = model.times().tolist()
    assert times == sorted(times)
    assert not np.isclose(times[1:], [0.125, 0.25, 0.375, 0.5]).any()
    assert model.weight.requires_grad and not model.times.inner.requires_grad


def test_rounds_of_learning_end_when_the_end_time_settles(monkeypatch: MonkeyPatch) -> None:
    split = with_validation(TOWN.split, TRAIN, 0)
    model = LTOCF(BipartiteGraph(split.train), LTOCF.Config(dim=8, end_time=USUAL_DEPTH))
    factors = iter([1.5, 0.8, 1.05, 2.0])

    def learn(model: LTOCF, *_: object) -> None:
        model.times = TimePoints([1.0], float(model.times.end) * next(factors), learn=False)

    monkeypatch.setattr(depth, "_learn", learn)
    learn_depth_(model, split.valid, TRAIN, BPR(negatives=4), seed=0)
    assert float(model.times.end) == approx(USUAL_DEPTH * 1.5 * 0.8 * 1.05)


def test_times_go_no_further_than_they_change_anything(monkeypatch: MonkeyPatch) -> None:
    split = with_validation(TOWN.split, TRAIN, 0)
    model = LTOCF(BipartiteGraph(split.train), LTOCF.Config(dim=8, end_time=USUAL_DEPTH))

    def learn(model: LTOCF, *_: object) -> None:
        model.times = TimePoints([10.0, 20.0], 40.0, learn=False)

    monkeypatch.setattr(depth, "_learn", learn)
    monkeypatch.setattr(depth, "_choose", lambda model, times, *_: None)
    learn_depth_(model, split.valid, TRAIN, BPR(negatives=4), seed=0)
    assert model.times().tolist() == approx([0, 3, 6, 12])


def test_from_far_too_deep_the_times_begin_with_the_usual_depth() -> None:
    split = with_validation(TOWN.split, TRAIN, 0)
    graph, found = BipartiteGraph(split.train), []
    for end in (USUAL_DEPTH, 12 * USUAL_DEPTH):
        model = LTOCF(graph, LTOCF.Config(dim=8, end_time=end))
        learn_depth_(model, split.valid, TRAIN, BPR(negatives=4), seed=0)
        found.append(model.times().detach())
    assert_close(found[0], found[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("found", "best", "kept"),
    [(9.0, 4.0, 4.0), (9.0, 9.0, 9.0), (2.0, 2.0, 2.0), (5.0, 4.0, 5.0)],
)
def test_times_that_went_far_are_kept_only_if_a_whole_training_ranks_better(
    monkeypatch: MonkeyPatch, found: float, best: float, kept: float
) -> None:
    split = with_validation(TOWN.split, TRAIN, 0)
    model = LTOCF(BipartiteGraph(split.train), LTOCF.Config(dim=8, end_time=USUAL_DEPTH))
    tried = list[float]()

    def trained(model: LTOCF, *_: object, last_epoch: int, **others: object) -> list[EpochRecord]:
        assert last_epoch == TRAIN.epochs
        tried.append(float(model.times.end))
        return [EpochRecord(1, 0.5, 1.0, metrics={"recall@20": -abs(tried[-1] - best)})]

    def learn(model: LTOCF, *_: object) -> None:
        model.times = TimePoints.evenly(3, found, learn=False)

    monkeypatch.setattr(depth, "_learn", learn)
    monkeypatch.setattr(depth, "train", trained)
    learn_depth_(model, split.valid, TRAIN, BPR(negatives=4), seed=0)
    assert float(model.times.end) == kept
    assert tried == ([] if found == 5 else [USUAL_DEPTH, found])  # 5 is near enough


def test_what_was_learned_on_held_out_pairs_goes_into_the_fit_on_all_pairs() -> None:
    data = cut_for(config(), TOWN)
    fitted = fit(data, config())
    assert len(fitted.model.graph.interactions) == len(data.split.seen)
    assert isinstance(fitted.model, LTOCF)
    assert float(fitted.model.times.end) != 1.0
    thinner = (len(data.split.train) / len(data.split.seen)) ** (1 / 3)  # more pairs, less depth
    learned = [thinner * time for time in fitted.records[-1].times]
    assert fitted.model.extracted_times() == approx(learned)
    assert len(fit(data, config(refit=False)).model.graph.interactions) == len(data.split.train)


def test_a_run_keeps_the_times_and_all_pairs(tmp_path) -> None:  # type: ignore[no-untyped-def]
    run = start_run(config(), tmp_path / "run", dataset=TOWN)
    train_run(run)
    model = Run.open(run.path).load()
    assert isinstance(model, LTOCF)
    assert float(model.times.end) != 1.0
    assert len(model.graph.interactions) == len(TOWN.split.seen)


def test_closed_forms_are_solved_on_everything() -> None:
    data: Dataset = cut_for(RunConfig(model={"name": "ease"}), TOWN)
    assert len(data.split.train) == len(TOWN.split.seen)
    assert not len(data.split.valid)
    users = np.flatnonzero(data.split.train.user_degrees)
    assert len(users) == data.split.train.n_users
