"""kill -9 at any moment: what was finished is whole, and the same command ends as undisturbed."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ltocf.data.dataset import Dataset
from ltocf.runs.run import Run
from ltocf.runs.settings import read_config
from ltocf.runs.versions import current_path
from ltocf.storage.files import writing

from .contents import contents, leftovers
from .lab import Ended, Lab
from .town import PUBLISHED, TRAIN, write_logs

TRIAL = "trial"
RUN, DATA = f"{TRIAL}/run", f"{TRIAL}/data"
Words = tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """A command whose output is TRIAL/`output`, how to go on, and what must hold of it."""

    command: Words
    output: str
    go_on: Callable[[Path], Words | None]  # given the output: the next command, if any is needed
    whole: Callable[[Path], object]  # raises if the output is there and damaged
    starts_from: str | None = None  # what is copied to TRIAL first


def in_use(output: Path) -> Path:
    """Of a run that was updated, the version that counts."""
    return current_path(output) if output.is_dir() else output


def _unless_there(command: Words) -> Callable[[Path], Words | None]:
    return lambda output: None if output.exists() else command


def _train(output: Path) -> Words | None:
    if not output.exists():
        return SCENARIOS["train"].command
    done = Run.open(output).finished and not (output / "state.safetensors").exists()
    return None if done else ("train", "--resume", "-o", RUN)


def _open_run(path: Path) -> None:
    run = Run.open(path)
    run.history()
    if run.finished:
        run.load()
        run.metrics()
    else:
        run.load_state()


def _settings(path: Path) -> None:
    if (path / "best.toml").exists():
        read_config(path / "best.toml")


PREPARE = ("prepare", "log.csv", "-o", DATA)
BULK = ("recommend", "run", "--all-users", "-k", "5", "-o", f"{TRIAL}/lists.parquet")
EXPORT = ("export", "run", "-o", f"{TRIAL}/out", "-f", "hnsw", "-f", "onnx")
TUNE = ("tune", "data", "-o", f"{TRIAL}/tune", "--model", "mf", "--trials", "2", *TRAIN[1:4])
UPDATE = ("update", RUN, "new.csv")
SCENARIOS = {
    "prepare": Scenario(PREPARE, "data", _unless_there(PREPARE), Dataset.load),
    "train": Scenario(("train", "data", "-o", RUN, *TRAIN), "run", _train, _open_run),
    "update": Scenario(UPDATE, "run", lambda _: UPDATE, _open_run, "run"),
    "tune": Scenario(TUNE, "tune", lambda _: TUNE, _settings),
    "recommend": Scenario(BULK, "lists.parquet", _unless_there(BULK), contents),
    "export": Scenario(EXPORT, "out", _unless_there(EXPORT), contents),
}


class World:
    """A lab with a data set and a run in it, and what each command makes when left alone."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.directory = lab, lab.directory
        self.expected: dict[str, dict[str, str]] = {}
        self.seconds: dict[str, float] = {}
        write_logs(self.directory)
        self.do("prepare", "log.csv", "-o", "data")
        self.do("train", "data", "-o", "run", *TRAIN)

    def do(self, *command: str) -> Ended:
        ended = self.lab.ltocf(*command)
        assert ended.code == 0, (command, ended)
        return ended

    @property
    def trial(self) -> Path:
        return self.directory / TRIAL

    def fresh(self, starts_from: str | None = None) -> Path:
        """An empty TRIAL, or one with a copy."""
        shutil.rmtree(self.trial, ignore_errors=True)
        self.trial.mkdir()
        if starts_from:
            shutil.copytree(self.directory / starts_from, self.trial / starts_from)
        return self.trial

    def undisturbed(self, name: str) -> dict[str, str]:
        if name not in self.expected:
            scenario = SCENARIOS[name]
            self.fresh(scenario.starts_from)
            self.seconds[name] = self.do(*scenario.command).seconds
            self.expected[name] = contents(in_use(self.trial / scenario.output))
        return self.expected[name]


def kill_once(world: World, name: str, random_: random.Random) -> bool:
    """Disturb one command; returns whether it was killed before it had ended."""
    scenario, expected = SCENARIOS[name], world.undisturbed(name)
    world.fresh(scenario.starts_from)
    output = world.trial / scenario.output
    # Half of the kills hit anywhere, half soon after something is first written.
    when: dict[str, Any] = {"kill_after": random_.uniform(0.05, 1) * world.seconds[name]}
    if random_.random() < 0.5 and not scenario.starts_from:
        when = {"kill_after": random_.uniform(0.001, 0.5), "kill_from": TRIAL}
    ended = world.lab.ltocf(*scenario.command, **when)
    assert ended.code in (0, -9), (name, when, ended)
    if output.exists():
        scenario.whole(output)
    if (command := scenario.go_on(output)) is not None:
        again = world.lab.ltocf(*command)
        done = "already finished" in again.err
        assert again.code == 0 or (again.clear and done), (name, when, again)
    if name == "tune":
        assert world.lab.call("tests.faults.kills:unfinished_trials", str(output)) == 0
        _settings(output)
    else:
        assert contents(in_use(output)) == expected, (name, when)
    with writing(output):  # whoever writes there next clears away what the killed one left
        pass
    assert not leftovers(world.trial), (name, when, leftovers(world.trial))
    if name == "update":
        assert [path.name for path in (output / "versions").iterdir()] == ["2"], when
    return ended.code == -9


def unfinished_trials(output: str) -> int:
    import optuna

    study = optuna.load_study(study_name="ltocf", storage=f"sqlite:///{output}/study.db")
    return sum(not trial.state.is_finished() for trial in study.trials)


@contextmanager
def mirror(directory: Path, seconds: float) -> Iterator[str]:
    """A server of published/ that takes about this long for a file; gives its address."""

    class Slow(SimpleHTTPRequestHandler):
        def copyfile(self, source: Any, outputfile: Any) -> None:
            content = source.read()
            for start in range(0, len(content), len(content) // 20 + 1):
                outputfile.write(content[start : start + len(content) // 20 + 1])
                time.sleep(seconds / 20)

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # the other side was killed
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Slow, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def kill_download_once(world: World, random_: random.Random) -> bool:
    trial = world.fresh()
    with mirror(world.directory / "published", seconds=1) as address:
        env = {"LTOCF_MIRROR": address, "XDG_CACHE_HOME": str(trial), "LTOCF_DATA": ""}
        fetch = partial(world.lab.start, "tests.faults.town:fetch", env=env)
        # Two files take two seconds at least, so that no machine is done before it is killed.
        ended = fetch(kill_after=random_.uniform(0.02, 1.8))
        again = fetch()
    assert again.code == 0, again
    for name in ("train.txt", "test.txt"):
        ours = world.directory / "published" / PUBLISHED / name
        copy = trial / "ltocf" / PUBLISHED / name
        assert copy.read_bytes() == ours.read_bytes()
        with writing(copy):
            pass
    assert not leftovers(trial), leftovers(trial)
    return ended.code == -9
