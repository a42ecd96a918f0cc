"""The model to deploy learns from everything and recommends nothing that anybody has met."""

import json

import numpy as np
import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.errors import ConfigError, RunError
from ltocf.recommend.recommender import Recommender
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.refit import refit_run
from ltocf.runs.run import Run
from ltocf.runs.settings import make_config
from ltocf.training.records import EpochRecord, best_epoch


@pytest.fixture(scope="module")
def measured(hamlet, tmp_path_factory) -> Run:
    path = tmp_path_factory.mktemp("refit") / "run"
    run = start_run(make_config({}, ["dim=4", "epochs=3", "negatives=4"]), path, dataset=hamlet)
    train_run(run)
    return run


def test_the_refitted_model_has_learned_from_every_pair(measured, tmp_path):
    deployed = refit_run(measured, tmp_path / "deploy")
    split = measured.dataset.split
    whole = split.seen.union(split.test)
    assert deployed.dataset.split.train.fingerprint == whole.fingerprint
    assert deployed.model.graph.interactions.fingerprint == whole.fingerprint
    assert len(deployed.dataset.split.test) == 0
    about = Dataset.load(tmp_path / "deploy" / "data").origin["refit"]
    assert about["metrics"] == measured.metrics()
    assert about["epochs"] == best_epoch(measured.history())


def test_nothing_that_a_user_has_met_is_recommended(hamlet, tmp_path):
    """Neither what was held out for the test nor what they did not like."""
    from dataclasses import replace

    split = hamlet.split
    unliked = split.test.select(np.arange(len(split.test)) % 2 == 0)
    test = split.test.select(np.arange(len(split.test)) % 2 == 1)
    dataset = replace(hamlet, split=replace(split, test=test, unliked=unliked))
    run = start_run(make_config({}, ["model=ease"]), tmp_path / "run", dataset=dataset)
    train_run(run)
    refit_run(run, tmp_path / "deploy")
    recommender = Recommender.load(tmp_path / "deploy")
    found = recommender.recommend(split.train.user_ids.ids.to_list(), 10)
    met = split.seen.union(split.test)
    users, items = met.user_ids.find(found["user"]), met.item_ids.find(found["item"])
    assert not any(item in met.items_of(user) for user, item in zip(users, items, strict=True))


def test_the_best_epoch_is_the_one_that_validation_chose():
    def record(epoch: int, recall: float | None) -> EpochRecord:
        metrics = {} if recall is None else {"recall@20": recall}
        return EpochRecord(epoch, 0.0, 0.0, [], metrics)

    assert best_epoch([record(1, 0.1), record(2, 0.3), record(3, 0.2)]) == 2
    assert best_epoch([record(1, None), record(2, None)]) == 2
    assert best_epoch([]) is None


def test_the_measured_run_itself_is_never_replaced(measured):
    with pytest.raises(ConfigError, match="is the run itself"):
        refit_run(measured, measured.path, overwrite=True)


def test_an_output_that_is_taken_is_refused_before_the_work(measured, tmp_path, monkeypatch):
    monkeypatch.setattr("ltocf.runs.refit.fit_for", lambda *_, **__: pytest.fail("it was fitted"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "precious").touch()
    with pytest.raises(RunError, match="already exists and was not written by ltocf"):
        refit_run(measured, tmp_path / "taken")


def test_a_run_that_is_not_finished_is_refused(hamlet, tmp_path):
    run = start_run(make_config({}, ["dim=4"]), tmp_path / "run", dataset=hamlet)
    with pytest.raises(RunError, match="training has not finished; continue it"):
        refit_run(run, tmp_path / "deploy")


def test_the_command_and_the_flag_do_the_same(ltocf, measured, tmp_path, hamlet):
    code, out, _ = ltocf("refit", measured.path, "-o", tmp_path / "by-command", "--json")
    assert code == 0
    pairs = len(hamlet.split.train) + len(hamlet.split.test)
    assert json.loads(out)["pairs"] == pairs
    hamlet.save(tmp_path / "data")
    settings = ("model=ltocf", "dim=4", "epochs=3", "negatives=4")
    code, out, _ = ltocf("train", tmp_path / "data", *settings, "-o", tmp_path / "run", "--deploy")
    assert code == 0
    assert f"fitted to all {pairs:,} pairs, saved in {tmp_path / 'run-deploy'}" in out
    one, other = (Recommender.load(tmp_path / name) for name in ("by-command", "run-deploy"))
    users = hamlet.split.train.user_ids.ids.to_list()
    assert one.recommend(users, 3).equals(other.recommend(users, 3))
    code, out, _ = ltocf("evaluate", tmp_path / "run-deploy")
    assert (code, out) == (0, "no test pairs: there is nothing to test\n")


def test_who_and_what_came_last_is_known_to_the_model_that_is_deployed(tmp_path):
    rows = [(f"u{n % 7}", f"i{n % 5}", n) for n in range(40)]
    rows += [("late", "i1", 100), ("u1", "fresh", 101), ("u2", "i4", 102), ("u3", "i1", 103)]
    log = pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")
    prepare(log, tmp_path / "data", Recipe(split="temporal", ratio=0.9))
    config = make_config({}, {"dataset": str(tmp_path / "data"), "model": "popularity"})
    run = start_run(config, tmp_path / "run")
    train_run(run)
    live = Recommender.load(refit_run(run, tmp_path / "live").path)
    assert {"late"} <= set(live.recommend("late", 3)["user"])
    assert "fresh" in live.dataset.split.train.item_ids.ids
    assert len(live.dataset.split.train) == log.select("user", "item").unique().height
