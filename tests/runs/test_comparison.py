"""Two runs side by side: the same users, the same pairs, and how sure a difference is."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from ltocf.errors import ConfigError, DataError
from ltocf.runs.comparison import bootstrap, compare_runs
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.settings import make_config


@pytest.fixture(scope="module")
def runs(hamlet, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    for name in ("random", "popularity", "ease"):
        config = make_config({}, [f"model={name}", "protocol=fixed"])
        train_run(start_run(config, folder / name, dataset=hamlet))
    return folder


def test_metrics_stand_side_by_side_as_evaluate_gives_them(runs, ltocf):
    found = compare_runs([runs / "random", runs / "ease"], [10, 20], ["recall", "mrr"])
    for path, values in zip(("random", "ease"), found.metrics, strict=True):
        tested = json.loads(ltocf("evaluate", runs / path, "--json")[1])
        assert values == {name: pytest.approx(tested[name]) for name in values}
    assert list(found.metrics[0]) == ["recall@10", "mrr@10", "recall@20", "mrr@20"]
    (rows,) = found.differences
    for row in rows:
        gap = found.metrics[1][row.metric] - found.metrics[0][row.metric]
        assert row.difference == pytest.approx(gap)
        assert row.low < row.difference < row.high
    assert rows[2].p < 0.01 < rows[2].low  # of Recall@20: EASE is better than chance
    assert rows[2].better > rows[2].worse


def test_a_run_is_not_better_than_itself(runs):
    (rows,) = compare_runs([runs / "ease", runs / "ease"], resamples=100).differences
    for row in rows:
        assert (row.difference, row.low, row.high, row.p) == (0, 0, 0, 1)


def test_the_interval_is_that_of_the_mean():
    """Differences of +1 and -1 with equal chance: the mean of n has a deviation of 1/sqrt(n)."""
    n = 400
    gaps = np.where(np.arange(n) % 2, 1.0, -1.0)
    (row,) = bootstrap({"x": np.zeros(n)}, {"x": gaps}, resamples=2000, seed=1)
    assert row.difference == 0
    assert row.high == pytest.approx(1.96 / math.sqrt(n), rel=0.15)
    assert row.low == pytest.approx(-1.96 / math.sqrt(n), rel=0.15)
    assert row.p > 0.8
    assert (row.better, row.worse) == (200, 200)
    (clear,) = bootstrap({"x": np.zeros(n)}, {"x": gaps + 0.5}, resamples=999, seed=1)
    assert clear.p == 2 / 1000  # no draw was below zero


def test_the_drawing_does_not_depend_on_how_much_is_held_at_once(monkeypatch):
    gaps = np.random.default_rng(0).normal(size=50)
    once = bootstrap({"x": np.zeros(50)}, {"x": gaps}, resamples=100, seed=1)
    monkeypatch.setattr("ltocf.runs.comparison.AT_ONCE", 70)
    parts = bootstrap({"x": np.zeros(50)}, {"x": gaps}, resamples=100, seed=1)
    assert asdict(parts[0]) == pytest.approx(asdict(once[0]))


def test_other_pairs_and_other_metrics_are_refused(runs, two_communities, tmp_path, hamlet):
    from ltocf.data.dataset import Dataset

    other = Dataset("toy", two_communities)
    config = make_config({}, ["model=popularity"])
    train_run(start_run(config, tmp_path / "other", dataset=other))
    with pytest.raises(DataError, match=r"other: was tested on other pairs than .*ease"):
        compare_runs([runs / "ease", tmp_path / "other"])
    with pytest.raises(ConfigError, match="unknown metric 'recal'; choose one of: recall, ndcg"):
        compare_runs([runs / "ease", runs / "random"], names=["recal"])
    with pytest.raises(ConfigError, match="two runs or more"):
        compare_runs([runs / "ease"])


def test_the_command_prints_and_draws(ltocf, runs, tmp_path):
    three = [runs / name for name in ("random", "popularity", "ease")]
    picture = tmp_path / "compared.svg"
    code, out, _ = ltocf("compare", *three, "--picture", picture)
    assert code == 0
    assert "test metrics over" in out and f"against {three[0]}" in out
    assert picture.read_text().startswith("<?xml")
    code, _, err = ltocf("compare", *three, "--picture", picture)
    assert code == 2 and "already exists" in err
    code, out, _ = ltocf("compare", *three, "--k", 5, "--metric", "ndcg", "--json")
    found = json.loads(out)
    assert [len(found[key]) for key in ("runs", "metrics", "differences")] == [3, 3, 2]
    code, _, err = ltocf("compare", *three, "--picture", tmp_path / "compared.doc")
    assert (code, "give one of: .pdf, .png, .svg" in err) == (2, True)


def test_runs_that_differ_in_their_seed_count_as_one(runs, hamlet, tmp_path, ltocf):
    for seed in (1, 2):
        config = make_config({}, ["model=random", "protocol=fixed", f"seed={seed}"])
        train_run(start_run(config, tmp_path / f"random-{seed}", dataset=hamlet))
    three = [runs / "random", tmp_path / "random-1", tmp_path / "random-2"]
    alone = compare_runs([*three, runs / "ease"], resamples=100)
    found = compare_runs([*three, runs / "ease"], resamples=100, average_seeds=True)
    assert found.runs == [str(runs / "random"), str(runs / "ease")]
    assert found.seeds == [3, 1]
    recalls = [values["recall@20"] for values in alone.metrics[:3]]
    assert len(set(recalls)) == 3
    assert found.metrics[0]["recall@20"] == pytest.approx(np.mean(recalls))
    assert found.spreads[0]["recall@20"] == pytest.approx(np.std(recalls, ddof=1))
    assert found.spreads[1]["recall@20"] == 0
    (rows,) = found.differences
    gap = found.metrics[1]["recall@20"] - found.metrics[0]["recall@20"]
    assert rows[0].difference == pytest.approx(gap)
    code, out, _ = ltocf("compare", *three, runs / "ease", "--average-seeds")
    assert code == 0 and f"{np.mean(recalls):.4f} ± {np.std(recalls, ddof=1):.4f}" in out
    assert f"{found.metrics[1]['recall@20']:.4f} ±" not in out  # of one seed
    with pytest.raises(ConfigError, match="differ in their seed alone"):
        compare_runs(three, average_seeds=True)
