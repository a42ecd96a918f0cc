"""The table of accuracies: both protocols from one run, and mean and spread over seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.accuracy import ENTRIES, Entry, outcome, table, write_report
from benchmarks.baselines import train

from ltocf.models import check_settings
from ltocf.runs.run import Run
from ltocf.runs.settings import make_config, read_config

CONFIGS = Path(__file__).parent.parent.parent / "src" / "ltocf" / "configs"
QUICK = ["dataset=town", "dim=8", "epochs=6", "learning_rate=0.05"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_row_has_a_config_that_takes_its_changes(entry: Entry) -> None:
    for _, changes in entry.runs():
        config = read_config(CONFIGS / f"{entry.config}.toml", changes)
        check_settings(config.model_name, config.model_options)
        assert config.train.protocol == "best-test-epoch"


def test_testing_on_the_way_does_not_change_what_training_comes_to(tmp_path: Path) -> None:
    entry = Entry("town", "town", seeds=(0,))
    ((name, changes),) = entry.runs()
    train(tmp_path / name, make_config({}, [*QUICK, *changes]))
    train(tmp_path / "honest", make_config({}, [*QUICK, "protocol=fixed"]))
    watched, honest = outcome(Run.open(tmp_path / name)), Run.open(tmp_path / "honest").metrics()
    assert watched.last["recall@20"] == honest["recall@20"]
    assert watched.best["recall@20"] >= watched.last["recall@20"]
    write_report({entry: [watched]}, tmp_path, tmp_path / "report.md", tmp_path / "histories")
    assert (tmp_path / "town.png").exists() and (tmp_path / "histories" / "town.jsonl").exists()
    assert f"{honest['recall@20']:.4f}" in (tmp_path / "report.md").read_text()


def test_seeds_are_averaged_and_their_spread_shown(tmp_path: Path) -> None:
    entry = Entry("town", "town", seeds=(0, 1))
    for name, changes in entry.runs():
        train(tmp_path / name, make_config({}, [*QUICK, *changes]))
    found = [outcome(Run.open(tmp_path / name)) for name, _ in entry.runs()]
    low, high = sorted(one.last["recall@20"] for one in found)
    assert low < high
    row = table({entry: found})[-1]
    assert f"{(low + high) / 2:.4f} ± {(high - low) / 2**0.5:.4f}" in row
