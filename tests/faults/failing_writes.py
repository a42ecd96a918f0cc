"""Let the n-th write, sync or rename fail, for every n until the operation passes.

Run in a process of its own with the library of fail_nth.c preloaded, so that what polars,
safetensors and SQLite write fails as well: `python -m tests.faults.failing_writes DIRECTORY`.
Its last line is one JSON object: how many calls of each operation were let fail.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
from sqlalchemy.exc import SQLAlchemyError

from ltocf.data.dataset import Dataset
from ltocf.errors import LtocfError
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.update import update_run
from ltocf.runs.versions import in_use
from ltocf.service.problems import Busy
from ltocf.service.store.events import Event, EventStore

SOURCE = Path(__file__).with_name("fail_nth.c")
REFUSALS = (LtocfError, OSError, SQLAlchemyError, Busy, pl.exceptions.PolarsError)
LOG = pl.DataFrame({"user": list("aaabbbccc"), "item": list("xyzxyzwxy")})
MOST = 2000  # calls of one operation


def build(directory: Path) -> Path | None:
    """The library, if there is a compiler."""
    library = directory / "fail_nth.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"]
    try:
        done = subprocess.run([*map(str, command)], capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return library if done.returncode == 0 else None


def fail_each(
    directory: Path, operation: Callable[[], object], check: Callable[[bool], None]
) -> int:
    """Fail the first call, then the second, and so on, until none is left to fail; after each,
    check that all is well, told whether the operation said that it had succeeded."""
    library = ctypes.CDLL(None)
    library.calls_made.restype = ctypes.c_long
    for n in range(1, MOST):
        library.fail_nth(str(directory).encode(), ctypes.c_long(n))
        try:
            operation()
            succeeded = True
        except REFUSALS:
            succeeded = False
        made = library.calls_made()
        library.fail_nth(b"", ctypes.c_long(0))
        check(succeeded)
        if made < n:
            assert succeeded
            return n - 1
    raise AssertionError("the operation never passes")


def of_data_sets(directory: Path) -> int:
    dataset = Recommender("ease").fit(LOG).dataset
    target = directory / "data"

    def check(succeeded: bool) -> None:
        if succeeded:
            assert len(Dataset.load(target).split.train) == len(dataset.split.train)
        elif target.exists():  # whole, though its last sync was not
            Dataset.load(target)

    return fail_each(directory, lambda: dataset.save(target, overwrite=True), check)


def of_runs(directory: Path) -> int:
    old = Recommender("ease").fit(LOG)
    new = Recommender("itemknn").fit(LOG)
    target = directory / "run"
    old.save(target)

    def check(succeeded: bool) -> None:
        found = Recommender.load(target).config.model_name
        assert found == "itemknn" if succeeded else found in ("ease", "itemknn")
        old.save(target, overwrite=True)

    return fail_each(directory, lambda: new.save(target, overwrite=True), check)


def of_updates(directory: Path) -> int:
    target = directory / "run"
    Recommender("ease").fit(LOG).save(target)
    names = iter(range(MOST))

    def update() -> None:
        more = pl.DataFrame({"user": [f"new {next(names)}"], "item": ["w"]})
        update_run(Run.open(target), more)

    before = 1

    def check(succeeded: bool) -> None:
        nonlocal before
        current = in_use(target).current
        assert current > before if succeeded else current >= before
        before = current
        assert Recommender.load(target).recommend("a", 1).height == 1

    return fail_each(directory, update, check)


def of_events(directory: Path) -> int:
    store = EventStore.open(directory / "events.db")
    acknowledged, numbers = [], iter(range(MOST))

    def add() -> None:
        user = f"user {next(numbers)}"
        store.add([[Event(user, "x", 1, None, f"key of {user}")]])
        acknowledged.append(user)

    def check(_: bool) -> None:
        other = EventStore.open(directory / "events.db")
        stored = [event.user for event in other.since(0)]
        assert len(stored) == len(set(stored))
        assert set(acknowledged) <= set(stored)
        other.close()

    found = fail_each(directory, add, check)
    store.close()
    return found


def of_forgetting(directory: Path) -> int:
    store = EventStore.open(directory / "events.db")
    store.add([[Event("ann", "a peculiar item", 1), Event("bob", "y", 2)]])

    def check(succeeded: bool) -> None:
        users = {event.user for event in store.since(0) if event.item is not None}
        assert "bob" in users
        if succeeded:
            assert "ann" not in users
            files = [path.read_bytes() for path in directory.glob("events.db*")]
            assert all(b"peculiar" not in content for content in files)
            store.add([[Event("ann", "a peculiar item", 1)]])

    found = fail_each(directory, lambda: store.forget("ann"), check)
    store.close()
    return found


OPERATIONS = {
    "data sets": of_data_sets,
    "runs": of_runs,
    "updates": of_updates,
    "events": of_events,
    "forgetting": of_forgetting,
}


def main() -> None:
    counts = {}
    for name, operation in OPERATIONS.items():
        directory = Path(sys.argv[1]) / name.replace(" ", "-")
        directory.mkdir()
        counts[name] = operation(directory)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
