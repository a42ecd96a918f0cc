"""Several processes against one: started by torchrun on this machine, speaking gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from ltocf.data.sources.town import make_town

SETTINGS = [
    "model=ltocf",
    "epochs=3",
    "negatives=4",
    "end_time=2.5",
    "time_learning_rate=0.05",
    "time_every=2",
]
ROOT = Path(__file__).parent.parent


def start(processes: int, *arguments: object, script: Path | None = None, **options: object):
    """A command of ours by so many processes; one is started without torchrun."""
    words = [str(argument) for argument in arguments]
    program = [str(script)] if script else ["-m", "ltocf"]
    launcher = [sys.executable, *program]
    if processes > 1:
        number = ["--nproc-per-node", str(processes)]
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", *number]
        launcher += [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
        launcher += program
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*launcher, *words], capture_output=True, text=True, timeout=300, env=environment
    )


def train(processes: int, run: Path, data: Path, *settings: str) -> dict[str, float]:
    words = ["train", data, "-o", run, "--threads", 1, "--json", *SETTINGS, *settings]
    done = start(processes, *words)
    assert done.returncode == 0, done.stderr
    metrics: dict[str, float] = json.loads(done.stdout)["metrics"]
    return metrics


def weights(run: Path) -> dict[str, np.ndarray]:
    return load_file(run / "weights.safetensors")


def history(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]


def assert_same_training(one: Path, other: Path) -> None:
    """Losses, times, embeddings and metrics, but for the order of sums."""
    for ours, theirs in zip(history(one), history(other), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
        assert ours["times"] == pytest.approx(theirs["times"], rel=1e-4)
    for name, ours in weights(one).items():
        np.testing.assert_allclose(ours, weights(other)[name], atol=2e-3, rtol=1e-2)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("distributed") / "data"
    make_town(people=120, places=90, seed=1).dataset.save(path)
    return path


@pytest.fixture(scope="module")
def alone(data: Path) -> Path:
    """What one process makes of it."""
    train(1, data.parent / "alone", data, "dim=10")
    return data.parent / "alone"


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_train_what_one_does(data: Path, alone: Path, processes: int) -> None:
    """Ten columns are not divisible by three."""
    run = data.parent / f"by-{processes}"
    metrics = train(processes, run, data, "dim=10")
    assert_same_training(run, alone)
    theirs = json.loads((alone / "metrics.json").read_text())
    assert metrics["recall@20"] == pytest.approx(theirs["recall@20"], abs=0.01)


def test_cosines_and_other_models_are_split_too(data: Path) -> None:
    for name, settings in {
        "cosine": ["dim=8", "normalise=true", "loss=softmax", "negatives=16"],
        "thresholds": ["dim=8", "loss=slatk", "negatives=16", "sample=40"],
        "recent": ["dim=8", "recency=0.5", "start=spectral"],
        "mf": ["model=mf", "dim=8"],
    }.items():
        kept = [s for s in SETTINGS if "time" not in s or name != "mf"]
        runs = []
        for processes in (1, 2):
            runs.append(data.parent / f"{name}-{processes}")
            words = ["train", data, "-o", runs[-1], "--threads", 1, *kept, *settings]
            done = start(processes, *words)
            assert done.returncode == 0, done.stderr
        assert_same_training(*runs)


def test_a_run_goes_on_with_another_number_of_processes(
    data: Path, alone: Path, tmp_path: Path
) -> None:
    """Stopped after an epoch by 2, continued by 1, and stopped by 1, continued by 3."""
    stop = tmp_path / "stop.py"
    stop.write_text(
        "import sys\n"
        "from ltocf.runs.run import Run\n"
        "save = Run.save_state\n"
        "def save_and_stop(self, state):\n"
        "    save(self, state)\n"
        "    raise KeyboardInterrupt\n"
        "Run.save_state = save_and_stop\n"
        "from ltocf.cli import main\n"
        "main()\n"
    )
    for first, then in ((2, 1), (1, 3)):
        run = tmp_path / f"{first}-{then}"
        words = ["train", data, "-o", run, "--threads", 1, *SETTINGS, "dim=10"]
        assert start(first, *words, script=stop).returncode != 0
        assert len(history(run)) == 1 and not (run / "metrics.json").exists()
        done = start(then, "train", "--resume", "-o", run, "--threads", 1)
        assert done.returncode == 0, done.stderr
        assert_same_training(run, alone)


def test_a_process_that_dies_ends_the_run_and_torchrun_starts_it_again(
    data: Path, alone: Path, tmp_path: Path
) -> None:
    die = tmp_path / "die.py"
    die.write_text(
        "import os, signal, sys\n"
        "from ltocf.training.trainer import Trainer\n"
        "step = Trainer.run_epoch\n"
        "def die_in_the_second_epoch(self, epoch, progress):\n"
        "    first_life = os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'\n"
        "    if epoch == 2 and os.environ['RANK'] == '1' and first_life:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return step(self, epoch, progress)\n"
        "Trainer.run_epoch = die_in_the_second_epoch\n"
        "from ltocf.cli import main\n"
        "main()\n"
    )
    run = tmp_path / "run"
    words = ["train", data, "-o", run, "--threads", 1, *SETTINGS, "dim=10"]
    assert start(2, *words, script=die).returncode != 0
    assert len(history(run)) == 1
    again = tmp_path / "again"
    words[words.index(run)] = again
    done = start(2, *words, script=die, max_restarts=1)
    assert done.returncode == 0, done.stderr
    assert_same_training(again, alone)


def test_one_of_several_processes_ends_without_taking_python_down(
    alone: Path, tmp_path: Path
) -> None:
    """Meanwhile gloo's threads are still there, and one of them may abort the process."""
    script = tmp_path / "taken_down.py"
    script.write_text(
        "import atexit, os\nfrom ltocf.cli import main\natexit.register(os.abort)\nmain()\n"
    )
    done = start(2, "evaluate", alone, "--json", script=script)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["recall@20"] > 0
    assert start(1, "evaluate", alone, script=script).returncode < 0
    assert start(2, "evaluate", tmp_path / "nothing", script=script).returncode != 0


def test_more_processes_than_columns_and_models_without_columns_are_refused(
    data: Path, alone: Path, tmp_path: Path
) -> None:
    done = start(3, "train", data, "-o", tmp_path / "run", "model=ltocf", "dim=2", "epochs=1")
    assert done.returncode != 0
    assert "error: dim = 2 cannot be split over 3 processes" in done.stderr
    done = start(2, "train", data, "-o", tmp_path / "run", "--model", "neumf", "epochs=1")
    assert done.returncode != 0
    assert "error: NeuMF cannot be trained by 2 processes" in done.stderr
    assert not (tmp_path / "run").exists()
    done = start(2, "update", alone, tmp_path / "log.csv")
    assert "'update' runs in one process only" in done.stderr


def test_evaluation_and_lists_of_several_processes_are_those_of_one(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, three = (start(n, "evaluate", alone, "--json") for n in (1, 3))
    assert json.loads(one.stdout) == pytest.approx(json.loads(three.stdout))
    files = [tmp_path / f"{n}.csv" for n in (1, 2)]
    for n, file in zip((1, 2), files, strict=True):
        done = start(n, "recommend", alone, "--all-users", "-o", file, "-k", 5)
        assert done.returncode == 0, done.stderr
    assert files[0].read_text() == files[1].read_text()
