import json

import numpy as np
import pytest
import torch

from ltocf.errors import RunError
from ltocf.models import MODELS
from ltocf.recommend.recommender import Recommender
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.run import Run, load_run
from ltocf.runs.settings import make_config

SETTINGS = [
    "dim=8", "epochs=2", "negatives=4", "time_every=1", "learn_times=training", "refit=false",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(hamlet, tmp_path_factory):
    run = start_run(make_config({}, SETTINGS), tmp_path_factory.mktemp("r") / "run", dataset=hamlet)
    train_run(run)
    return run


@pytest.fixture
def copy(trained, tmp_path):
    import shutil

    return shutil.copytree(trained.path, tmp_path / "copy")


def test_a_loaded_run_scores_and_names_as_the_saved_one(trained):
    again = Run.open(trained.path)
    users = np.arange(5, dtype=np.int32)
    assert np.array_equal(again.load().scorer()(users), trained.load().scorer()(users))
    assert again.dataset.split.train.user_ids == trained.dataset.split.train.user_ids
    assert again.config == trained.config


def test_learned_times_survive(trained):
    times = Run.open(trained.path).load().extracted_times()
    assert times != [1.0, 2.0, 3.0]
    assert times == trained.history()[-1].times or times == trained.history()[0].times


def test_a_run_holds_all_that_is_needed_to_repeat_it(trained):
    names = {path.name for path in trained.path.iterdir()}
    assert names == {
        "config.toml", "data", "weights.safetensors", "scorer.safetensors", "history.jsonl",
        "metrics.json", "portrait.json", "curves.png", "digests.json",
    }  # fmt: skip
    assert trained.config.versions.keys() >= {"ltocf", "python", "torch", "numpy"}
    assert len(trained.history()) == 2


def test_a_finished_run_is_not_resumed(trained):
    with pytest.raises(RunError, match="already finished"):
        train_run(trained)


def test_an_interrupted_run_resumes_from_its_files_to_the_same_end(trained, hamlet, tmp_path):
    run = start_run(make_config({}, SETTINGS), tmp_path / "run", dataset=hamlet)

    def interrupt(stage, done, total, note):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(run, interrupt)
    assert train_run(Run.open(run.path)) == trained.metrics()
    weights = [Run.open(path).load().weight for path in (run.path, trained.path)]
    assert torch.equal(*weights)
    assert not (run.path / "state.safetensors").exists()


def test_a_foreign_directory_is_refused(tmp_path):
    with pytest.raises(RunError, match="not a run directory"):
        Run.open(tmp_path)


FILES = [
    *("config.toml", "weights.safetensors", "history.jsonl", "metrics.json", "digests.json"),
    *("data/train.parquet", "data/items.parquet", "data/dataset.json", "data/digests.json"),
]


def read_everything(path):
    run = Run.open(path)
    return run.load(), run.history(), run.metrics()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["a flipped bit", "a shorter one", "an empty one", "a directory"])
def test_a_damaged_file_is_named(copy, name, kind):
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).unlink()
    if kind == "a directory":
        (copy / name).mkdir()
    else:
        kept = {"a flipped bit": content, "a shorter one": content[:-1], "an empty one": b""}
        (copy / name).write_bytes(kept[kind])
    # A digest that is altered itself is told from the file that it was of.
    named = ".*" if name.endswith("digests.json") else name.rpartition("/")[2]
    with pytest.raises(RunError, match=named):
        read_everything(copy)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("weights.safetensors", b"rubbish", "damaged run: weights.safetensors cannot be read"),
        ("config.toml", b"[train]\nepoch = 3", "damaged run: unknown key 'epoch'"),
        ("history.jsonl", b"{}\n", "history.jsonl is not a history that ltocf wrote"),
        ("data/train.parquet", b"PAR1", "damaged run: .*train.parquet cannot be read"),
        ("data/dataset.json", b"{}", "damaged run"),
        ("data/dataset.json", b"[" * 100_000, "damaged run"),
        ("config.toml", b"a = " + b"[" * 100_000, "damaged run: .*cannot be read as TOML"),
    ],
)
def test_a_damaged_file_is_named_even_where_no_digest_was_kept(copy, name, content, message):
    (copy / "digests.json").unlink()
    (copy / "data" / "digests.json").unlink()
    (copy / name).write_bytes(content)
    with pytest.raises(RunError, match=message):
        read_everything(copy)


def test_another_runs_file_is_noticed(copy, hamlet, tmp_path):
    other = start_run(make_config({}, [*SETTINGS, "seed=1"]), tmp_path / "other", dataset=hamlet)
    train_run(other)
    (copy / "weights.safetensors").write_bytes((other.path / "weights.safetensors").read_bytes())
    with pytest.raises(RunError, match=r"weights\.safetensors is not the file that digests"):
        Run.open(copy).load()


@pytest.mark.parametrize("failure", [FileNotFoundError("gone"), ValueError("mmap length")])
def test_a_file_that_vanishes_with_its_run_is_no_damage(copy, hamlet, monkeypatch, failure):
    def replaced(*_):
        monkeypatch.undo()
        Recommender("popularity").fit(hamlet).save(copy, overwrite=True)
        raise failure

    monkeypatch.setattr("ltocf.runs.run_files.map_arrays", replaced)
    run, model = load_run(copy)
    assert run.config.model_name == "popularity"
    assert type(model) is MODELS["popularity"]


def test_weights_of_another_model_are_refused(copy):
    text = (copy / "config.toml").read_text()
    (copy / "config.toml").write_text(text.replace("dim = 8", "dim = 9"))
    (copy / "digests.json").unlink()
    with pytest.raises(RunError, match="belongs to another model"):
        Run.open(copy).load()


def test_files_have_the_mode_that_the_umask_wants(trained):
    plain = (trained.path / "data" / "dataset.json").stat().st_mode
    modes = {path.name: path.stat().st_mode for path in trained.path.iterdir() if path.is_file()}
    assert set(modes.values()) == {plain}


def test_a_run_without_weights_says_to_resume(hamlet, tmp_path):
    run = start_run(make_config({}, SETTINGS), tmp_path / "run", dataset=hamlet)
    with pytest.raises(RunError, match="continue it"):
        run.load()
    with pytest.raises(RunError, match="training has not finished"):
        run.metrics()


def test_an_existing_run_is_in_the_way_unless_overwritten(copy, hamlet):
    config = make_config({}, SETTINGS)
    with pytest.raises(RunError, match="--overwrite"):
        start_run(config, copy, dataset=hamlet)
    start_run(config, copy, dataset=hamlet, overwrite=True)
    assert not (copy / "weights.safetensors").exists()


def test_a_wrong_setting_leaves_nothing_behind(hamlet, tmp_path):
    with pytest.raises(Exception, match="unknown model 'nosuch'; choose one of: ltocf"):
        start_run(make_config({}, ["model=nosuch"]), tmp_path / "run", dataset=hamlet)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_clear_line_and_leaves_the_old_file(copy, monkeypatch):
    run = Run.open(copy)
    model = run.load()
    before = (copy / "weights.safetensors").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ltocf.runs.run_files.save_arrays", full)
    with pytest.raises(RunError, match="No space left on device"):
        run.save_weights(model)
    assert (copy / "weights.safetensors").read_bytes() == before
    assert not [path for path in copy.iterdir() if path.name.startswith(".")]


def test_metrics_are_plain_json(trained):
    metrics = json.loads((trained.path / "metrics.json").read_text())
    assert 0 < metrics["recall@20"] <= 1
