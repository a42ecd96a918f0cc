import tomllib

import pytest

from ltocf.config import RunConfig, to_toml
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


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.epoch=3", "unknown key 'epoch' in \\[train\\]; choose one of: epochs, device"),
        ("loss=hinge", "unknown loss 'hinge'; choose one of: bpr, softmax, bsl"),
        ("epochs=-1", "epochs = -1: input should be greater than or equal to 0"),
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
