import json
import subprocess
import sys

import pytest

from ltocf.models import MODELS
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.settings import read_config

LTOCF = ("model=ltocf", "dim=8", "epochs=2")


@pytest.fixture(scope="module")
def run(hamlet, tmp_path_factory):
    from ltocf.runs.pipeline import start_run, train_run
    from ltocf.runs.settings import make_config

    path = tmp_path_factory.mktemp("cli") / "run"
    config = make_config({}, ["dim=8", "epochs=2", "negatives=4"])
    train_run(start_run(config, path, dataset=hamlet))
    return path


def test_train_evaluate_and_recommend_end_to_end(ltocf, hamlet, tmp_path):
    hamlet.save(tmp_path / "data")
    output = tmp_path / "run"
    code, out, err = ltocf("train", tmp_path / "data", *LTOCF, "-o", output, "--json")
    assert code == 0
    trained = json.loads(out)
    assert "2/2" in err
    code, out, _ = ltocf("evaluate", output, "--k", 20, "--json")
    assert code == 0
    assert json.loads(out)["recall@20"] == trained["metrics"]["recall@20"]
    user = hamlet.split.train.user_ids.ids[0]
    code, out, _ = ltocf("recommend", output, "--user", user, "-k", 3, "--json")
    assert code == 0
    found = json.loads(out)["recommendations"]
    assert [row["rank"] for row in found] == [1, 2, 3]
    seen = hamlet.split.train.item_ids[hamlet.split.train.items_of(0)]
    assert not set(seen) & {row["item"] for row in found}


def test_prepare_then_train_keeps_string_ids(ltocf, tmp_path):
    rows = [f"ann{u},tea house {i},{u + i}" for u in range(8) for i in range(12) if (u + i) % 3]
    log = tmp_path / "visits.csv"
    log.write_text("\n".join(["user,item,time", *rows]))
    code, out, _ = ltocf("prepare", log, "-o", tmp_path / "data")
    assert code == 0
    assert "8 users x 12 items" in out
    code, _, _ = ltocf("train", tmp_path / "data", *LTOCF, "-o", tmp_path / "run")
    assert code == 0
    code, out, _ = ltocf("recommend", tmp_path / "run", "--user", "ann3", "-k", 2, "--json")
    assert code == 0
    assert json.loads(out)["recommendations"][0]["item"].startswith("tea house ")


def test_datasets_lists_the_published_sets(ltocf):
    code, out, _ = ltocf("datasets")
    assert code == 0
    assert "gowalla" in out


def test_configs_lists_what_train_takes_by_name(ltocf, tmp_path):
    code, out, _ = ltocf("configs", "--json")
    assert code == 0
    assert json.loads(out)["gowalla-ltocf"]["model"]["name"] == "ltocf"
    code, out, _ = ltocf("configs")
    assert "yelp2018-bspm" in out
    quick = ("town", "epochs=1", "dim=4", "protocol=fixed")
    code, _, err = ltocf("train", "--config", "gowalla-ltocf", *quick, "-o", tmp_path / "run")
    assert code == 0, err
    config = read_config(tmp_path / "run" / "config.toml")
    assert (config.dataset, config.model["dim"], config.model["end_time"]) == ("town", 4, 5.0)


@pytest.mark.parametrize("name", ["C:\\new", 'a "quoted" name', "true"])
def test_a_data_set_is_named_as_it_was_typed(ltocf, hamlet, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    hamlet.save(tmp_path / name)
    code, _, err = ltocf("train", name, "--model", "popularity", "-o", "run", "--json")
    assert code == 0, err
    assert read_config(tmp_path / "run" / "config.toml").dataset == name


def test_text_output_shows_names_and_metrics(ltocf, run, hamlet):
    code, out, _ = ltocf("evaluate", run)
    assert code == 0
    assert "recall" in out
    code, out, _ = ltocf("recommend", run, "--user", hamlet.split.train.user_ids.ids[0])
    assert code == 0
    assert "name" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nowhere"], "unknown data set 'nowhere'"),
        (["train", "nope.csv"], "nope.csv: no such file or folder"),
        (["train", "town", "tempo=3"], "unknown key 'tempo'"),
        (["train", "town", "--budget", "soon"], "budget = 'soon': give seconds, minutes or hours"),
        (["train", "town", "--model", "nosuch"], "unknown model 'nosuch'; choose one of: ltocf"),
        (
            ["train", "town", "model=ltocf", "dimm=3"],
            "unknown key 'dimm' in the settings of model 'ltocf'",
        ),
        (["train", "town", "epochs=many"], "epochs = 'many'"),
        (["train", "town", "gowalla"], "give one data set"),
        (["train", "--resume"], "ltocf train --resume -o RUN"),
        (["train", "--config", "none.toml"], "no config file 'none.toml'"),
        (["prepare", "nowhere.csv", "-o", "data"], "nowhere.csv"),
        (["evaluate", "nowhere"], "not a run directory"),
        (["recommend", "RUN", "--user", "nobody"], "unknown user 'nobody'"),
        (["recommend", "RUN", "--user", "PERSON", "-k", "0"], "k = 0: must be a whole number"),
        (["evaluate", "RUN", "--k", "0"], "k = 0: must be a whole number of at least 1"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    ltocf, run, hamlet, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    person = hamlet.split.train.user_ids.ids[0]
    stand_ins = {"RUN": str(run), "PERSON": person}
    code, out, err = ltocf(*(stand_ins.get(word, word) for word in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_holds_a_run_is_refused(ltocf, run):
    before = sorted(path.name for path in run.iterdir())
    code, _, err = ltocf("train", "town", "-o", run)
    assert code == 2
    assert "--overwrite" in err
    assert sorted(path.name for path in run.iterdir()) == before


@pytest.mark.parametrize("command", ["evaluate", "recommend"])
def test_a_run_that_is_replaced_while_it_is_read_is_read_again(
    ltocf, command, hamlet, tmp_path, monkeypatch
):
    old, new = (Recommender(name).fit(hamlet) for name in ("itemknn", "popularity"))
    user = hamlet.split.train.user_ids.ids[0]
    words = (tmp_path / "run", *(["--user", user] if command == "recommend" else []), "--json")
    new.save(tmp_path / "run")
    _, expected, _ = ltocf(command, *words)
    old.save(tmp_path / "run", overwrite=True)
    opened = Run.open

    def replaced(path):
        run = opened(path)
        monkeypatch.setattr(Run, "open", opened)
        new.save(path, overwrite=True)
        return run

    monkeypatch.setattr(Run, "open", replaced)
    assert ltocf(command, *words)[:2] == (0, expected)


def test_an_unwritable_output_is_one_clear_line(ltocf, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = ltocf("train", "town", "-o", tmp_path / "file" / "run")
    assert code == 2
    assert "cannot be written" in err


def test_ctrl_c_says_how_to_resume(ltocf, hamlet, tmp_path, monkeypatch):
    hamlet.save(tmp_path / "data")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ltocf.progress.Lines.__call__", interrupt)
    code, _, err = ltocf("train", tmp_path / "data", *LTOCF, "-o", tmp_path / "run")
    assert code == 130
    assert f"ltocf train --resume -o {tmp_path / 'run'}" in err
    monkeypatch.undo()


def test_models_lists_every_model_with_its_settings(ltocf):
    code, out, _ = ltocf("models", "--json")
    assert code == 0
    assert json.loads(out)["ltocf"]["solver"] == "rk4"


def test_help_and_import_touch_nothing_heavy():
    code = (
        "import sys, ltocf, ltocf.cli\n"
        "heavy = {'torch', 'numba', 'polars', 'scipy', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_demo_trains_compares_recommends_and_gives_reasons(ltocf, tmp_path):
    code, out, _ = ltocf("demo", "--quick", "-o", tmp_path / "demo", "--epochs", 2)
    assert code == 0
    for text in ("popularity", "lightgcn", "For ", "because of", "curves.png"):
        assert text in out
    assert (tmp_path / "demo" / "ltocf" / "curves.png").is_file()


def test_threads_hold_for_the_command(ltocf, run):
    import torch

    from ltocf.machine.threads import use_threads

    try:
        code, _, _ = ltocf("evaluate", run, "--threads", 1, "--json")
        assert (code, torch.get_num_threads()) == (0, 1)
        code, _, err = ltocf("evaluate", run, "--threads", 0)
        assert code == 2 and "--threads" in err
    finally:
        use_threads()


def test_models_are_listed_in_a_line_each_and_one_with_its_settings(ltocf):
    code, out, _ = ltocf("models")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:-1]] == [*MODELS, "auto"]
    code, out, _ = ltocf("models", "ease")
    assert code == 0 and out.startswith("EASE: ") and "  l2 = " in out
