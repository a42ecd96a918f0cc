"""The benchmark's parts run and measure what they say, on the built-in town."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.time_to_accuracy import (
    draw,
    first_past,
    in_own_process,
    time_the_authors_path,
    train_implicit,
    train_ours,
)

from ltocf.data.sources.catalog import load_dataset
from ltocf.runs.settings import make_config


@pytest.fixture(scope="module")
def config():
    return make_config({}, ["dataset=town", "dim=8", "epochs=3", "protocol=fixed", "seed=1"])


def test_our_curve_has_a_point_an_epoch_and_time_goes_on(config, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    curve = train_ours(config)["curve"]
    assert [point["epoch"] for point in curve] == [1, 2, 3]
    seconds = [point["seconds"] for point in curve]
    assert seconds == sorted(seconds) and seconds[0] > 0
    reached = curve[1]["recall@20"]
    past = first_past(curve, reached)
    assert past is not None and past["recall@20"] >= reached
    assert first_past(curve, 1.1) is None


def test_the_authors_epoch_is_a_step_for_every_2048_pairs(config):
    found = time_the_authors_path(config, steps=1)
    pairs = len(load_dataset("town").split.train)
    assert found["epoch_seconds"] == pytest.approx(found["step_seconds"] * -(-pairs // 2048))


def test_implicit_is_chosen_on_validation_and_the_picture_shows_all(config, tmp_path: Path):
    als = in_own_process(train_implicit, config, "als")
    assert 0.1 < als["recall@20"] < 0.5 and als["peak_mib"] > 50
    curve = [{"epoch": 1, "seconds": 2.0, "recall@20": 0.1}]
    report = {"ours": {"curve": curve}, "bpr": als, "als": als, "targets": [0.1]}
    draw(report, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
