import tomllib
from pathlib import Path

import numpy as np
import pytest

from ltocf.config import BPR, RunConfig, TrainConfig, find_config, shipped_configs, to_toml
from ltocf.errors import ConfigError
from ltocf.runs.settings import make_config, read_config


def test_overrides_find_their_section():
    config = make_config({}, ["epochs=7", "loss.l2=0.5", "loss=softmax", "dim=8", "dataset=town"])
    assert config.train.epochs == 7
    assert (config.loss.name, config.loss.l2) == ("softmax", 0.5)
    assert config.model == {"name": "ltocf", "dim": 8}
    assert config.dataset == "town"


def test_overrides_win_over_the_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("[train]\nepochs = 3\nbatch_size = 9\n")
    config = read_config(path, ["epochs=4"])
    assert (config.train.epochs, config.train.batch_size) == (4, 9)


def test_toml_reads_back_as_the_same_config():
    config = make_config({}, ['dataset=a "b" é', "times=[1.0, 2.5]", "learn_times=false"])
    assert make_config(tomllib.loads(to_toml(config))) == config


@pytest.mark.parametrize("text", ["C:\\new", 'a "b"', "line\nbreak", "é", "true", "1.5", "[1]"])
def test_a_mapping_is_taken_as_it_is_and_survives_a_file(text):
    config = make_config({}, {"dataset": text, "times": (1.0, 2.5), "dim": np.int64(8)})
    assert config.dataset == text
    assert config.model == {"name": "ltocf", "times": [1.0, 2.5], "dim": 8}
    assert make_config(tomllib.loads(to_toml(config))) == config


def test_parts_of_a_blend_survive_a_file():
    parts = [
        {"model": "gfcf", "weight": 1.0, "options": {"rank": 4}},
        {"model": "ease", "weight": 0.5, "options": {}},
    ]
    config = make_config({}, {"model": "blend", "members": parts})
    assert config.model["members"] == parts
    assert make_config(tomllib.loads(to_toml(config))) == config


def test_a_setting_of_none_is_left_out_of_a_file():
    config = RunConfig(model={"name": "ltocf", "step_size": None})
    assert "step_size" not in to_toml(config)


def test_a_config_is_found_by_its_path_or_by_the_name_it_has_in_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = find_config("gowalla-ltocf")
    assert read_config(shipped).model_name == "ltocf"
    (tmp_path / "gowalla-ltocf").write_text("seed = 5")
    assert read_config(find_config("gowalla-ltocf")).seed == 5  # one's own comes first
    assert find_config("mine/gowalla-ltocf") == Path("mine/gowalla-ltocf")
    with pytest.raises(ConfigError, match=r"no config 'gowala': .* 'ltocf configs'"):
        find_config("gowala")


@pytest.mark.parametrize("name", shipped_configs())
def test_every_config_of_the_package_can_be_read_and_is_called_after_what_it_trains(name):
    config = read_config(find_config(name))
    assert name.startswith(f"{config.dataset}-{config.model_name}")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.epoch=3", "unknown key 'epoch' in \\[train\\]; choose one of: epochs, device"),
        ("loss=hinge", "unknown loss 'hinge'; choose one of: bpr, softmax, bsl, slatk"),
        ("epochs=-1", "epochs = -1: input should be greater than or equal to 0"),
        ("seed=-1", "seed = -1: input should be greater than or equal to 0"),
        (f"seed={2**63}", f"seed = {2**63}: input should be less than {2**63}"),
        ("epochs", "expected key=value"),
        ("nosuch.key=1", "unknown key 'nosuch'"),
    ],
)
def test_a_wrong_setting_is_named_with_the_choices(override, message):
    with pytest.raises(ConfigError, match=message):
        make_config({}, [override])


def test_a_missing_or_broken_file_is_one_clear_line(tmp_path):
    with pytest.raises(ConfigError, match="no config file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("= 3")
    with pytest.raises(ConfigError, match=r"bad\.toml: cannot be read as TOML"):
        read_config(tmp_path / "bad.toml")


def test_configs_are_immutable():
    with pytest.raises(ValueError, match="frozen"):
        RunConfig().seed = 3


@pytest.mark.parametrize(("density", "negatives"), [(0.04, 8), (1.0, 4), (0.00066, 62), (1e-6, 64)])
def test_the_number_of_negatives_falls_with_the_density(density: float, negatives: int) -> None:
    assert BPR().negatives_for(density, 10) == negatives
    assert BPR(negatives=3).negatives_for(density, 10) == 3


@pytest.mark.parametrize(("pairs", "negatives"), [(8, 62), (4, 8), (3, 4), (0, 4)])
def test_where_nodes_have_few_pairs_there_are_fewer_negatives(pairs: float, negatives: int) -> None:
    assert BPR().negatives_for(0.00066, pairs) == negatives
    assert BPR(negatives=70).negatives_for(0.00066, pairs) == 70


@pytest.mark.parametrize(("pairs", "l2"), [(1, 1.2e-2), (50, 1.2e-2), (150, 4e-3)])
def test_the_penalty_of_a_pair_falls_with_the_pairs_of_a_user(pairs: float, l2: float) -> None:
    assert BPR().l2_for(pairs) == pytest.approx(l2)
    assert BPR(l2=0).l2_for(pairs) == 0


@pytest.mark.parametrize(
    ("pairs_per_node", "rate"), [(88, 8e-3), (8, 8e-3), (4, 2e-3), (0.1, 1e-3), (0, 1e-3)]
)
def test_where_nodes_have_few_pairs_the_rate_is_lower(pairs_per_node, rate):
    assert TrainConfig().learning_rate_for(pairs_per_node) == pytest.approx(rate)
    assert TrainConfig(learning_rate=0.1).learning_rate_for(pairs_per_node) == 0.1


@pytest.mark.parametrize("planned", [8, 30])
def test_a_whole_schedule_sums_to_the_rates_of_the_epochs_chosen(planned: int) -> None:
    def rates(epochs: int, last: int) -> float:
        middles = (np.arange(last * 50) + 0.5) / (epochs * 50)
        return float((1 + np.cos(np.pi * middles)).sum() / 100)

    for chosen in range(planned + 1):
        whole = TrainConfig().whole_schedule(chosen, planned)
        assert rates(max(whole, 1), whole) == pytest.approx(rates(planned, chosen), abs=0.26)
        assert TrainConfig(schedule="constant").whole_schedule(chosen, planned) == chosen
