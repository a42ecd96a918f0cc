"""ltocf train: from a log, without test pairs, and what is checked before the work."""

import json
import os

import pytest

from ltocf.data.dataset import Dataset

ROWS = [f"ann{u},tea house {i},{u + i}" for u in range(8) for i in range(12) if (u + i) % 3]
QUICK = ("model=ltocf", "epochs=2", "dim=4")


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["user,item,time", *ROWS]))
    return path


def test_a_log_is_prepared_and_its_data_set_kept_beside_the_run(ltocf, log, tmp_path):
    code, out, err = ltocf("train", log.name, *QUICK)
    assert code == 0
    assert "visits.csv is a log: prepared with the usual choices" in err
    assert "8 users x 12 items" in err
    assert "saved in runs/visits-ltocf" in out
    kept = Dataset.load(tmp_path / "runs" / "visits-data")
    assert kept.counts["test"] > 0
    assert Dataset.load(tmp_path / "runs" / "visits-ltocf" / "data").counts["items"] == 12


def test_a_log_is_prepared_again_only_when_it_has_changed(ltocf, log, tmp_path):
    marker = tmp_path / "runs" / "visits-data" / "dataset.json"
    assert ltocf("train", log.name, "--model", "popularity")[0] == 0
    code, _, err = ltocf("train", log.name, "--model", "ease")
    assert code == 0 and "prepared before, in runs/visits-data; taken as it is" in err
    log.write_text(log.read_text() + "\nbob,tea house 1,5")
    later = marker.stat().st_mtime + 10
    os.utime(log, (later, later))
    code, _, err = ltocf("train", log.name, "--model", "rp3beta")
    assert code == 0 and "9 users x 12 items" in err


def test_without_arguments_it_says_what_to_do(ltocf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = ltocf("train")
    assert (code, out) == (2, "")
    assert err.startswith("error: say what to learn from: a log of your own (ltocf train LOG.csv)")
    (tmp_path / "settings.toml").write_text("seed = 1\n")
    assert ltocf("train", "--config", "settings.toml")[0] == 2
    assert not (tmp_path / "runs").exists()


def test_a_model_without_test_pairs_trains_and_says_that_there_is_nothing_to_test(ltocf, log):
    assert ltocf("prepare", log, "-o", "data", "--split", "none")[0] == 0
    for model in ("ltocf", "ease"):
        settings = QUICK if model == "ltocf" else ()
        code, out, _ = ltocf("train", "data", "--model", model, *settings, "-o", model)
        assert code == 0
        assert out.startswith(f"no test pairs: there is nothing to test\nsaved in {model}")
        assert ltocf("evaluate", model)[:2] == (0, "no test pairs: there is nothing to test\n")
        assert json.loads(ltocf("evaluate", model, "--json")[1]) == {}
        assert ltocf("recommend", model, "--user", "ann3")[0] == 0
    code, _, err = ltocf("train", "--resume", "-o", "ltocf")
    assert code == 2 and "already finished" in err


def test_a_run_without_test_pairs_resumes(ltocf, log, monkeypatch):
    assert ltocf("prepare", log, "-o", "data", "--split", "none")[0] == 0

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ltocf.progress.Lines.__call__", interrupt)
    assert ltocf("train", "data", *QUICK, "-o", "run")[0] == 130
    monkeypatch.undo()
    monkeypatch.chdir(log.parent)
    code, out, _ = ltocf("train", "--resume", "-o", "run")
    assert (code, out.splitlines()[0]) == (0, "no test pairs: there is nothing to test")


def test_an_output_that_is_taken_is_refused_before_anything_is_done(ltocf, log, monkeypatch):
    monkeypatch.setattr(
        "ltocf.search.process.supervisor.supervise", lambda *_: pytest.fail("work was done")
    )
    (log.parent / "taken").mkdir()
    (log.parent / "taken" / "precious").touch()
    code, _, err = ltocf("train", log.name, "-o", "taken")
    assert code == 2 and "taken: already exists and was not written by ltocf" in err
    assert not (log.parent / "visits-data").exists()


def test_training_into_a_run_that_has_not_ended_names_resume(ltocf, log, monkeypatch):
    def interrupt(_, stage, *rest):
        if stage.startswith("training"):
            raise KeyboardInterrupt

    monkeypatch.setattr("ltocf.progress.Lines.__call__", interrupt)
    assert ltocf("train", log.name, *QUICK, "-o", "run")[0] == 130
    code, _, err = ltocf("train", log.name, *QUICK, "-o", "run")
    assert code == 2 and "continue it (ltocf train --resume -o run)" in err


def test_a_log_is_read_with_the_options_of_prepare(ltocf, log):
    text = log.read_text().replace("user,item,time", "who,what,when")
    log.write_text(text)
    named = ("--user", "who", "--item", "what", "--time", "when", "--split", "leave-last-out")
    code, _, err = ltocf("train", log.name, "--model", "popularity", *named, "-o", "run")
    assert code == 0, err
    assert Dataset.load("run/data").split_kind == "leave-last-out"
    code, _, err = ltocf("train", "town", "--model", "popularity", "--user", "who")
    assert code == 2 and "--user says how to read a log, but 'town' is an already" in err


def test_a_closed_form_draws_no_curves(ltocf, log):
    code, out, _ = ltocf("train", log.name, "--model", "ease", "-o", "run")
    assert code == 0 and "curves" not in out
    assert not (log.parent / "run" / "curves.png").exists()


def test_a_backslash_in_the_name_of_a_data_set_stays(ltocf, log):
    code, _, err = ltocf("train", r"C:\new")
    assert code == 2
    assert r"unknown data set 'C:\\new'" in err
