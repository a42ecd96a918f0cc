"""start_from = RUN: a model that starts from another run's embeddings."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch.testing import assert_close

from ltocf.config import BPR, RunConfig, TrainConfig
from ltocf.data.sources.town import make_town
from ltocf.errors import ConfigError
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.run import Run
from ltocf.runs.settings import read_config

TOWN = make_town(60, 40).dataset


def settings(name: str, *, epochs: int = 2, init: Path | None = None) -> RunConfig:
    return RunConfig(
        model={"name": name, "dim": 8},
        start_from=None if init is None else str(init),
        loss=BPR(negatives=2),
        train=TrainConfig(epochs=epochs, batch_size=256, refit=False),
    )


@pytest.fixture
def mf(tmp_path: Path) -> Path:
    train_run(start_run(settings("mf"), tmp_path / "mf", dataset=TOWN))
    return tmp_path / "mf"


@pytest.mark.parametrize("name", ["neumf", "gcmc", "pinsage", "ngcf"])
def test_a_run_starts_from_the_vectors_of_another(name: str, mf: Path, tmp_path: Path) -> None:
    run = start_run(settings(name, init=mf, epochs=0), tmp_path / "new", dataset=TOWN)
    train_run(run)
    theirs, ours = Run.open(mf).load().fitted_state(), Run.open(run.path).load().fitted_state()
    assert_close(ours["weight"], theirs["weight"], rtol=0, atol=0)


def test_the_setting_is_kept_with_the_run(mf: Path, tmp_path: Path) -> None:
    run = start_run(settings("mf", init=mf), tmp_path / "new", dataset=TOWN)
    assert read_config(run.path / "config.toml").start_from == str(mf)


def test_vectors_of_another_width_are_refused_before_anything_is_written(
    mf: Path, tmp_path: Path
) -> None:
    config = settings("ngcf", init=mf).model_copy(update={"model": {"name": "ngcf", "dim": 4}})
    with pytest.raises(ConfigError, match="needs a run with vectors of dim 4, found some of dim 8"):
        start_run(config, tmp_path / "new", dataset=TOWN)
    assert not (tmp_path / "new").exists()


def test_a_run_that_saw_other_pairs_is_refused(mf: Path, tmp_path: Path) -> None:
    other_cut = settings("ngcf", init=mf).model_copy(update={"seed": 1})
    with pytest.raises(ConfigError, match="was trained on other pairs"):
        start_run(other_cut, tmp_path / "new", dataset=TOWN)


def test_a_model_without_vectors_refuses_to_start_from_some(mf: Path, tmp_path: Path) -> None:
    config = settings("multvae", init=mf).model_copy(update={"model": {"name": "multvae"}})
    with pytest.raises(ConfigError, match="MultVAE has no vectors"):
        start_run(config, tmp_path / "new", dataset=TOWN)
