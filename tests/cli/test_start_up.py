"""What needs no model is answered, or refused, before torch and Numba are loaded."""

import subprocess
import sys

import polars as pl
import pytest

from ltocf.recommend.recommender import Recommender

WATCHED = """
import sys
from ltocf.cli import main
try:
    main()
except SystemExit as end:
    loaded = sorted({"torch", "numba", "scipy", "matplotlib"} & set(sys.modules))
    print(end.code or 0, *loaded)
"""


@pytest.fixture(scope="module")
def folder(hamlet, tmp_path_factory):
    path = tmp_path_factory.mktemp("start-up")
    Recommender("popularity").fit(hamlet).save(path / "run")
    log = pl.DataFrame({"user": ["ann", "ann", "bob"], "item": ["tea", "jam", "tea"]})
    Recommender("mf", epochs=1, dim=2).fit(log).save(path / "vectors")
    return path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--version", 0),
        ("models", 0),
        ("models nope", 2),
        ("datasets", 0),
        ("configs", 0),
        ("train --config nope", 2),
        ("train", 2),
        ("train town --model nope", 2),
        ("train town -o run", 2),
        ("train --resume", 2),
        ("evaluate nowhere", 2),
        ("compare run nowhere", 2),
        ("compare run run --picture run.doc", 2),
        ("refit nowhere", 2),
        ("recommend nowhere --user ann", 2),
        ("recommend run", 2),
        ("recommend run --user nobody", 2),
        ("recommend run --user nobody -o lists.txt", 2),
        ("explain run --user nobody --item nothing", 2),
        ("similar run --item nothing", 2),
        ("update nowhere log.csv", 2),
        ("export nowhere -o out", 2),
        ("serve nowhere", 2),
        ("response -o picture.doc", 2),
        ("rollback nowhere", 2),
        ("prepare nowhere.csv -o data", 2),
    ],
)
def test_torch_and_numba_are_not_waited_for(folder, arguments, code):
    command = [sys.executable, "-c", WATCHED, *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.stdout.splitlines()[-1] == str(code), done.stderr
    assert (code == 0) == (done.stderr == "")


@pytest.mark.parametrize("command", ["recommend vectors --user bob", "popular vectors"])
def test_a_list_does_not_wait_for_scipy(folder, command):
    """NumPy alone multiplies vectors, and every item of this log was touched."""
    command = [sys.executable, "-c", WATCHED, *command.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.stdout.splitlines()[-1] == "0", done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "train --help",
        "models",
        "models ltocf",
        "models --json",
        "datasets",
        "configs",
        "doctor --json",
        "cache",
    ],
)
def test_help_waits_for_no_library_of_ours(arguments):
    watched = WATCHED.replace('"torch",', '"torch", "polars", "numpy",')
    command = [sys.executable, "-c", watched, *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0", done.stderr


@pytest.mark.parametrize("path", ["/model", "/users/somebody/recommendations"])
def test_a_service_answers_without_torch(folder, path):
    watched = WATCHED.replace('{"torch", "numba", "scipy", "matplotlib"}', '{"torch"}')
    command = [sys.executable, "-c", watched, "serve", "run", "--get", path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.stdout.splitlines()[-1] == "0", done.stderr
