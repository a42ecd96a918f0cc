from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from itertools import count

import pytest

from ltocf.data.splits import no_split
from ltocf.errors import ConfigError, DataError
from ltocf.runs.run import Run
from ltocf.studies.plan import Plan
from ltocf.studies.reproduce import STUDIES, chosen, listing, reproduce

TINY = ("dim=4", "epochs=2")


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """One output for all studies, so that they share their trainings."""
    return tmp_path_factory.mktemp("paper")


@pytest.fixture
def plan(hamlet) -> Plan:
    return Plan(hamlet, "hamlet", overrides=TINY)


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_writes_its_page_with_pictures_data_and_configs(plan, shared, name):
    report = reproduce(chosen([name]), plan, shared)
    page = report.read_text().partition(f"## {name}: ")[2].partition("\n## ")[0]
    pictures = re.findall(r"\]\(([^)]*\.svg)\)", page)
    assert pictures
    for picture in pictures:
        for suffix in (".svg", ".png", ".pdf", ".csv"):
            assert (shared / picture).with_suffix(suffix).stat().st_size > 50
    assert r"\toprule" in (shared / name / "tables.tex").read_text()
    for config in re.findall(r"\]\((configs/[^)]*)\)", page):
        assert (shared / config).is_file()
    assert "nan" not in page


@pytest.mark.slow
def test_interrupted_and_continued_is_the_same_byte_for_byte(plan, tmp_path, monkeypatch):
    """The clock is stopped, since seconds are what may differ."""
    ticks = count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
    studies, plan = chosen(["runtime"]), replace(plan, seeds=1)
    reproduce(studies, plan, tmp_path / "whole")
    for calls in (1, 4, 6):  # in the first epoch of a training, in its last, between two
        with pytest.raises(KeyboardInterrupt):
            reproduce(studies, plan, tmp_path / "parts", _interrupting(calls))
    reproduce(studies, plan, tmp_path / "parts")
    for name in _files(tmp_path / "whole"):
        whole, parts = ((tmp_path / side / name).read_bytes() for side in ("whole", "parts"))
        assert parts == whole, name
    assert _files(tmp_path / "parts") == _files(tmp_path / "whole")


def _interrupting(calls):
    left = count(calls, -1)

    def watch(stage, done, total, note):
        if next(left) <= 1:
            raise KeyboardInterrupt

    return watch


def _files(output):
    """All but the runs: a run's config has versions and its own place in it."""
    paths = (path.relative_to(output) for path in output.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if path.parts[0] != "runs")


@pytest.fixture(scope="module")
def times_studied(hamlet, tmp_path_factory):
    """The output of one study with one seed, and what it told meanwhile."""
    output, told = tmp_path_factory.mktemp("times"), []
    plan = Plan(hamlet, "hamlet", overrides=TINY, seeds=1)
    reproduce(chosen(["times"]), plan, output, lambda *words: told.append(words))
    return output, told


def test_a_second_study_trains_only_what_is_new(plan, times_studied, tmp_path):
    plan = replace(plan, seeds=1)
    shutil.copytree(times_studied[0], tmp_path, dirs_exist_ok=True)
    before = {path.name for path in (tmp_path / "runs").iterdir()}
    shares = []
    reproduce(
        chosen(["times"]), plan, tmp_path, lambda stage, done, total, note: shares.append(done)
    )
    assert {path.name for path in (tmp_path / "runs").iterdir()} == before
    assert set(shares) <= {100.0}
    reproduce(chosen(["curves"]), plan, tmp_path)
    new = {path.name for path in (tmp_path / "runs").iterdir()} - before
    rates = 2
    assert len(new) == rates and all(name.startswith("lightgcn") for name in new)
    text = (tmp_path / "report.md").read_text()
    assert "## times:" in text and "## curves:" in text  # the report keeps what was done before


def test_progress_goes_from_nothing_to_all(times_studied):
    _, seen = times_studied
    shares = [done for _, done, _, _ in seen]
    assert shares == sorted(shares) and 0 < shares[0] < 50 and shares[-1] == pytest.approx(100)
    assert all(re.search(r", \d+ (s|min) left$", note) for *_, note in seen)


@pytest.mark.slow
def test_lightgcn_and_ltocf_with_euler_differ_by_rounding_alone(plan, shared):
    reproduce(chosen(["equivalence"]), plan, shared)
    (path,) = (shared / "runs").glob("equivalence-*.json")
    for values in json.loads(path.read_text()).values():
        assert values["stepped"] < 1e-5 * values["size"]
        assert values["trained"] < 1e-2 * values["size"]


def test_a_model_that_starts_from_another_says_so_in_its_config(plan, tmp_path):
    study = STUDIES["table"]
    few = replace(
        study,
        settings=lambda plan: [s for s in study.settings(plan) if s.label in ("MF", "PinSage")],
        present=lambda found, page: None,
    )
    reproduce([few], plan, tmp_path)
    (path,) = (tmp_path / "configs").glob("pinsage-*.toml")
    first = re.search(r'start_from = "(.*)"', path.read_text())[1]
    assert Run.open(tmp_path / first).finished


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(ConfigError, match=r"unknown study 'tabel'; choose from: .*T, K.*table"):
        chosen(["tabel"])


@pytest.mark.parametrize("name", STUDIES)
def test_data_without_test_pairs_is_refused_before_training(hamlet, tmp_path, name):
    plan = Plan(replace(hamlet, split=no_split(hamlet.split.train)), "hamlet")
    with pytest.raises(DataError, match=f"study '{name}' needs test pairs"):
        reproduce(chosen([name]), plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_wrong_setting_is_refused_before_training(hamlet, tmp_path):
    plan = Plan(hamlet, "hamlet", overrides=("solver=magic",))
    with pytest.raises(ConfigError, match="unknown solver 'magic'"):
        reproduce(chosen(["times"]), plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_listing_has_every_study_with_its_trainings_and_time(plan):
    listed = {study.name: study for study in listing(plan)}
    assert list(listed) == list(STUDIES)
    assert listed["table"].trainings == 13
    assert all(study.seconds > 0 for study in listed.values())
