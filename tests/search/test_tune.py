"""The search for settings."""

import json
import tomllib
from dataclasses import replace

import pytest

from ltocf.data.ids import IdMap
from ltocf.errors import ConfigError
from ltocf.runs.settings import make_config, read_config
from ltocf.search.tuning.dimensions import SearchDimension
from ltocf.search.tuning.tune import GRIDS, SPACES, grid_of, tune

QUICK = ["dim=4", "epochs=3", "negatives=2", "model=lightgcn"]
SPACE = ["learning_rate=0.001:0.05", "layers=1|2"]


def test_a_study_finds_settings_and_can_be_continued(hamlet, tmp_path):
    config, seen = make_config({}, QUICK), []
    first = tune(
        hamlet, config, tmp_path, trials=2, space=SPACE, progress=lambda *told: seen.append(told)
    )
    assert (first.trials, first.resumed) == (2, 0)
    assert seen[0] == (
        "trial", 1, 2, f"as it is: Recall@20 {(start := _recall(seen[0])):.4f} (best {start:.4f})",
    )  # fmt: skip
    assert seen[1][3].startswith("learning_rate=0.") and " layers=" in seen[1][3]
    assert first.recall >= start - 1e-4
    second = tune(hamlet, config, tmp_path, trials=3, space=SPACE)
    assert (second.trials, second.resumed) == (5, 2)
    assert second.recall >= first.recall
    assert set(second.found) in ({"learning_rate", "layers"}, set())  # or nothing was better
    best = read_config(tmp_path / "best.toml")
    assert best.train.learning_rate == second.found.get("learning_rate")
    assert best.model.get("layers") == second.found.get("layers")
    assert best.model["dim"] == 4


def _recall(told):
    return float(told[3].split("Recall@20 ")[1].split()[0])


def test_hopeless_trials_are_pruned(hamlet, tmp_path):
    # A tiny learning rate never leaves the start.
    config = make_config(
        {}, ["dim=8", "epochs=8", "negatives=4", "model=mf", "patience=8", "start=random"]
    )
    report = tune(hamlet, config, tmp_path, trials=12, space=["learning_rate=1e-7|1e-6|0.05|0.1"])
    assert report.pruned > 0
    assert report.best.train.learning_rate in (0.05, 0.1)


def test_a_closed_form_is_tuned_by_its_validation_recall(hamlet, tmp_path):
    config = make_config({}, ["model=gfcf"])
    report = tune(hamlet, config, tmp_path, trials=3, space=["rank=2:16", "ideal_weight=0.0:1.0"])
    assert 0 < report.recall < 1
    assert 2 <= report.best.model.get("rank", 2) <= 16


def test_a_model_may_be_given_by_its_name_and_paths_as_texts(hamlet, tmp_path):
    hamlet.save(tmp_path / "data")
    report = tune(str(tmp_path / "data"), "gfcf", str(tmp_path / "study"), trials=1)
    assert report.best.model_name == "gfcf"


def test_a_study_of_other_choices_is_not_mixed_in(hamlet, tmp_path):
    config = make_config({}, ["model=gfcf"])
    tune(hamlet, config, tmp_path, trials=1, space=["rank=2:8"])
    with pytest.raises(ConfigError, match="study of other data, settings or ranges"):
        tune(hamlet, config, tmp_path, trials=1, space=["rank=2:9"])
    split = hamlet.split
    strangers = IdMap([f"other {id_}" for id_ in split.train.user_ids.ids])
    renamed = replace(split, train=replace(split.train, user_ids=strangers))
    with pytest.raises(ConfigError, match="study of other data"):
        tune(replace(hamlet, split=renamed), config, tmp_path, trials=1, space=["rank=2:8"])


@pytest.mark.parametrize("text", ["rank", "rank=", "rank=5", "rank=5:2", "rank=a:b", "=1:2"])
def test_a_text_that_is_no_search_dimension_is_refused(text):
    with pytest.raises(ConfigError, match=r"expected key=low:high or key=a\|b\|c"):
        SearchDimension.parse(text)


def test_wrong_settings_are_refused_before_a_study_is_made(hamlet, tmp_path):
    config = make_config({}, ["model=gfcf"])
    with pytest.raises(ConfigError, match="unknown key 'ranks'"):
        tune(hamlet, config, tmp_path / "out", space=["ranks=1:2"])
    with pytest.raises(ConfigError, match="say what to search for 'popularity'"):
        tune(hamlet, make_config({}, ["model=popularity"]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("model", SPACES)
def test_the_usual_choices_are_settings_of_their_models(model):
    for text in SPACES[model]:
        choice = SearchDimension.parse(text)
        value = (*choice.options, choice.low)[0]
        make_config({"model": {"name": model}}, [f"{choice.key}={value}"])


def test_the_command_line_tunes(hamlet, ltocf, tmp_path):
    hamlet.save(tmp_path / "data")
    arguments = (
        "tune", tmp_path / "data", "--model", "mf", "dim=4", "epochs=1", "--trials", 1, "-o",
        tmp_path / "out",
    )  # fmt: skip
    code, out, err = ltocf(*arguments, "--json")
    assert code == 0, err
    assert json.loads(out)["trials"] == 1
    code, out, _ = ltocf(*arguments)
    assert "best of 2 trials" in out
    assert tomllib.loads((tmp_path / "out" / "best.toml").read_text())["model"]["name"] == "mf"
    assert ltocf("tune", tmp_path / "no data")[0] == 2


def test_a_grid_is_gone_through_once(hamlet, tmp_path):
    config = make_config({}, ["dim=4", "epochs=1", "negatives=2", "model=lightgcn"])
    space, seen = ["layers=1|2", "learning_rate=0.01|0.02"], []
    search = lambda trials: tune(  # noqa: E731
        hamlet, config, tmp_path, trials=trials, space=space, exhaustive=True,
        progress=lambda *told: seen.append(told[3].partition(":")[0]),
    )  # fmt: skip
    assert search(3).trials == 3
    assert search(20).trials == 4
    assert search(1).trials == 4
    expected = {f"layers={n} learning_rate={rate}" for n in (1, 2) for rate in (0.01, 0.02)}
    assert len(seen) == 4 and set(seen) == expected


def test_the_papers_grid_varies_the_papers_recipe_and_accepts_fixed_settings():
    config, choices = grid_of("paper", "town", ["solver=rk4", "epochs=2"])
    assert config.loss.negatives == 1 and config.train.batch_size == 2048
    assert config.train.epochs == 2 and config.dataset == "town"
    assert len(choices) == len(GRIDS["paper"]) - 1
    for choice in choices:
        key, options = (parsed := SearchDimension.parse(choice)).key, parsed.options
        for option in options:
            make_config(config.model_dump(exclude_none=True), {key: option})
    with pytest.raises(ConfigError, match="unknown grid 'papre'; choose one of: paper"):
        grid_of("papre", "town", [])
