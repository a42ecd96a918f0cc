"""What needs no model is answered, or refused, before torch and Numba are loaded.

Imports are counted, not seconds. Commands that may load the same libraries share a process, since
each process costs more than its commands: the first one that loads too much is the one to mend.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ltocf.recommend.recommender import Recommender

WATCHED = """
import contextlib, io, json, sys
from ltocf.cli import main
watched, *commands = json.loads(sys.argv[1])
found = {}
for command in commands:
    sys.argv, code = ["ltocf", *command.split()], 0
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    found[command] = [code, said.getvalue(), sorted(set(watched) & set(sys.modules))]
print(json.dumps(found))
"""
HEAVY = ("torch", "numba", "scipy", "matplotlib")
# What a command that only refuses says, and what it answers with.
SHORT = {
    "--version": 0,
    "models": 0,
    "models nope": 2,
    "datasets": 0,
    "configs": 0,
    "train --config nope": 2,
    "train": 2,
    "train town --model nope": 2,
    "train town -o run": 2,
    "train --resume": 2,
    "evaluate nowhere": 2,
    "compare run nowhere": 2,
    "compare run run --picture run.doc": 2,
    "refit nowhere": 2,
    "recommend nowhere --user ann": 2,
    "recommend run": 2,
    "recommend run --user nobody": 2,
    "recommend run --user nobody -o lists.txt": 2,
    "explain run --user nobody --item nothing": 2,
    "similar run --item nothing": 2,
    "update nowhere log.csv": 2,
    "export nowhere -o out": 2,
    "serve nowhere": 2,
    "response -o picture.doc": 2,
    "rollback nowhere": 2,
    "prepare nowhere.csv -o data": 2,
}
LISTS = ("recommend vectors --user bob", "popular vectors", "items vectors", "rollback run")
HELP = (
    "--help",
    "train --help",
    "models",
    "models ltocf",
    "models --json",
    "datasets",
    "configs",
    "doctor --json",
    "cache",
)
SERVED = ("serve run --get /model", "serve run --get /users/somebody/recommendations")


def loaded(folder: Path, watched: tuple[str, ...], *commands: str) -> dict[str, Any]:
    """Of each command its exit code, its messages, and which of these modules are there then."""
    text = json.dumps([watched, *commands])
    command = [sys.executable, "-c", WATCHED, text]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def folder(hamlet, tmp_path_factory):
    path = tmp_path_factory.mktemp("start-up")
    Recommender("popularity").fit(hamlet).save(path / "run")
    log = pl.DataFrame({"user": ["ann", "ann", "bob"], "item": ["tea", "jam", "tea"]})
    Recommender("mf", epochs=1, dim=2).fit(log).save(path / "vectors")
    return path


@pytest.fixture(scope="module")
def short(folder):
    return loaded(folder, HEAVY, *SHORT)


@pytest.mark.parametrize("command", SHORT)
def test_torch_and_numba_are_not_waited_for(short, command):
    code, said, modules = short[command]
    assert (code, modules) == (SHORT[command], []), said
    assert (code == 0) == (said == "")


@pytest.fixture(scope="module")
def listed(folder):
    return loaded(folder, HEAVY, *LISTS)


@pytest.mark.parametrize("command", LISTS)
def test_a_list_does_not_wait_for_scipy(listed, command):
    """NumPy alone multiplies vectors, and every item of this log was touched."""
    code, said, modules = listed[command]
    assert modules == [] and code == (2 if command == "rollback run" else 0), said


@pytest.fixture(scope="module")
def helped(folder):
    return loaded(folder, (*HEAVY, "polars", "numpy"), *HELP)


@pytest.mark.parametrize("command", HELP)
def test_help_waits_for_no_library_of_ours(helped, command):
    code, said, modules = helped[command]
    assert (code, modules) == (0, []), said


def test_a_service_answers_without_torch(folder):
    for code, said, modules in loaded(folder, ("torch",), *SERVED).values():
        assert (code, modules) == (0, []), said
