"""Whole files or none: locks, leftovers, links, and what a reader sees meanwhile."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ltocf.errors import DataError, RunError
from ltocf.storage.files import new_directory, replacing, writing

HOLD = """
import sys, time
from pathlib import Path
from ltocf.storage.files import new_directory
with new_directory(Path(sys.argv[1]), marker="m", overwrite=True) as temporary:
    (temporary / "m").write_text("theirs")
    print("holding", flush=True)
    time.sleep(60)
"""


def make(path: Path, text: str) -> None:
    with new_directory(path, marker="m", overwrite=True) as temporary:
        (temporary / "m").write_text(text)


@pytest.fixture
def other(tmp_path):
    """A process that is writing tmp_path/out and will not end by itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "holding\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def names(path: Path) -> set[str]:
    return {file.name for file in path.iterdir()}


def test_the_second_of_two_writers_gets_an_error_that_names_the_process_with_the_lock(
    tmp_path, other
):
    message = f"is being written by process {other.pid}; wait until that has finished"
    with (
        pytest.raises(RunError, match=message),
        new_directory(tmp_path / "out", marker="m", error=RunError),
    ):
        pass


def test_a_killed_writer_frees_its_lock_and_the_next_one_clears_its_leftovers(tmp_path, other):
    other.kill()
    other.wait()
    assert len(names(tmp_path)) == 2  # its lock file and its temporary directory
    make(tmp_path / "out", "ours")
    assert names(tmp_path) == {"out"}
    assert (tmp_path / "out" / "m").read_text() == "ours"


def test_leftovers_of_others_are_not_touched(tmp_path):
    strange = tmp_path / ".other.0123abcd.ltocf-tmp"
    strange.touch()
    (tmp_path / ".out.notes").touch()
    make(tmp_path / "out", "ours")
    assert names(tmp_path) == {"out", strange.name, ".out.notes"}


def test_another_thread_of_this_process_waits_its_turn_too(tmp_path):
    told: list[str] = []

    def write() -> None:
        try:
            make(tmp_path / "out", "second")
        except DataError as error:
            told.append(str(error))

    with writing(tmp_path / "out"):
        make(tmp_path / "out", "first")  # the same thread has the lock
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert "is being written by another thread of this process" in told[0]
    assert (tmp_path / "out" / "m").read_text() == "first"


def test_a_writer_that_moved_the_old_directory_aside_and_died_loses_nothing(tmp_path):
    make(tmp_path / "out", "old")
    (tmp_path / "out").rename(tmp_path / ".out.0123abcd.ltocf-old")
    with pytest.raises(RuntimeError), writing(tmp_path / "out"):
        raise RuntimeError
    assert (tmp_path / "out" / "m").read_text() == "old"
    assert names(tmp_path) == {"out"}


@pytest.mark.parametrize("swaps", [True, False])
def test_a_directory_is_replaced_with_or_without_the_systems_help(tmp_path, monkeypatch, swaps):
    if not swaps:
        monkeypatch.setattr("ltocf.storage.files._exchange", lambda one, other: False)
    make(tmp_path / "out", "old")
    make(tmp_path / "out", "new")
    assert (tmp_path / "out" / "m").read_text() == "new"
    assert names(tmp_path) == {"out"}


def test_a_link_stays_a_link(tmp_path):
    make(tmp_path / "v1", "old")
    (tmp_path / "latest").symlink_to("v1")
    make(tmp_path / "latest", "new")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "v1" / "m").read_text() == "new"


def test_a_failed_body_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "file") as temporary:
        temporary.write_text("new")
        raise ZeroDivisionError
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == {"file"}


def test_what_the_system_refuses_is_one_line_also_from_a_library_in_rust(tmp_path):
    with (
        pytest.raises(DataError, match=r"file: cannot be written \(No space left on device\)"),
        replacing(tmp_path / "file"),
    ):
        raise RuntimeError("I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_modes_follow_the_umask_whatever_a_library_sets(tmp_path, mask):
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "file") as temporary:
            temporary.unlink()
            temporary.touch(mode=0o600)
        make(tmp_path / "out", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o777 & ~mask
