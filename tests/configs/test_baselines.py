from pathlib import Path

import pytest
from benchmarks.baselines import (
    PUBLISHED,
    Row,
    config_names,
    config_of,
    finished_rows,
    table,
    train,
)

from ltocf.models import check_settings
from ltocf.runs.settings import make_config, read_config

CONFIGS = Path(__file__).parent.parent.parent / "src" / "ltocf" / "configs"


@pytest.mark.parametrize("name", config_names())
def test_every_row_of_the_table_has_a_config_that_its_model_takes(name: str) -> None:
    dataset, _, model = name.partition("-")
    config = read_config(CONFIGS / f"{name}.toml")
    check_settings(config.model_name, config.model_options)
    assert config.dataset == dataset
    assert config.model_name == model.removesuffix("-norm")
    assert config.model.get("by_degree", False) == model.endswith("-norm")


def test_runs_that_others_start_from_are_trained_before_them() -> None:
    seen: set[str] = set()
    for name in config_names():
        init = read_config(CONFIGS / f"{name}.toml").start_from
        assert init is None or Path(init).name in seen
        seen.add(name)


def test_a_row_of_the_table_has_ours_beside_what_was_published() -> None:
    row = Row("gowalla-mf", 30, 95.0, 0.16123, 0.1377, *PUBLISHED["gowalla"]["mf"])
    last = table([row]).splitlines()[-1]
    assert last == "| gowalla-mf | 30 | 95 | 0.1612 | 0.1377 | 0.1291 / 0.1109 |"


def test_a_run_of_other_settings_is_not_taken_for_this_one(tmp_path: Path) -> None:
    quick = ["model=mf", "dim=4", "epochs=1", "protocol=fixed"]
    train(tmp_path / "run", make_config({}, quick))
    train(tmp_path / "run", make_config({}, quick))  # finished: left alone
    with pytest.raises(SystemExit, match="trained with other settings"):
        train(tmp_path / "run", make_config({}, [*quick, "l2=0.5"]))


def test_a_run_starts_from_the_one_beside_it_and_is_not_trained_twice(tmp_path: Path) -> None:
    quick = '[model]\nname = "mf"\ndim = 4\n[train]\nepochs = 1\nprotocol = "fixed"\n'
    (tmp_path / "gowalla-mf.toml").write_text(quick)
    (tmp_path / "gowalla-gcmc.toml").write_text(f'start_from = "elsewhere/gowalla-mf"\n{quick}')
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in ("gowalla-mf", "gowalla-gcmc", "gowalla-gcmc"):
        train(runs / name, config_of(name, tmp_path, runs))
    assert [(row.run, row.epochs) for row in finished_rows(runs)] == [
        ("gowalla-mf", 1),
        ("gowalla-gcmc", 1),
    ]
