"""A log of several files, read by several processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from ltocf.data.ingest import parts
from ltocf.data.ingest import prepare as preparing
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.data.pairs import store
from ltocf.data.sources.town import make_town
from ltocf.errors import ConfigError, DataError


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(preparing, "CHUNK_ROWS", 211)
    monkeypatch.setattr(store, "BUCKET_ROWS", 500)


def make_lake(folder: Path, kind: str, parts: int = 5) -> Path:
    """Later files have ids that earlier ones have not, and some rows come twice."""
    log = make_town(120, 90, seed=3).log()
    log = pl.concat([log, log[::7]]).with_columns(
        rating=pl.int_range(pl.len()) % 5 + 1, plays=(pl.int_range(pl.len()) % 11) / 10 + 0.1
    )
    folder.mkdir()
    step = -(-log.height // parts)
    for part in range(parts):
        some = log[part * step : (part + 1) * step]
        file = folder / f"part-{part}.{kind}"
        some.write_parquet(file) if kind == "parquet" else some.write_csv(file)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_several_processes_write_the_same_bytes_as_one(tmp_path, kind):
    lake = make_lake(tmp_path / "lake", kind)
    recipe = Recipe(threshold=2, weight="plays", min_user=2, min_item=2, validation=0.1)
    reports = {
        processes: prepare(
            lake, tmp_path / str(processes) / "set", recipe, processes=processes
        ).to_dict()
        for processes in (1, 3)
    }
    assert contents(tmp_path / "3" / "set") == contents(tmp_path / "1" / "set")
    for report in reports.values():
        del report["output"], report["seconds"]
    assert reports[3] == reports[1]
    assert reports[1]["duplicates"] > 0


def test_several_processes_report_a_bad_row_as_one_process_does(tmp_path):
    lake = make_lake(tmp_path / "lake", "csv")
    for part in (3, 4):
        with (lake / f"part-{part}.csv").open("a") as file:
            file.write("nobody,,0,1,1\n")
    said = []
    for processes in (1, 3):
        with pytest.raises(DataError) as told:
            prepare(lake, tmp_path / "set", processes=processes)
        said.append(str(told.value))
    assert said[0] == said[1]
    assert "part-3.csv: row" in said[0]
    skipped = [
        prepare(lake, tmp_path / f"set-{n}", Recipe(skip_bad=True), processes=n) for n in (1, 3)
    ]
    assert [report.skipped for report in skipped] == [2, 2]
    assert skipped[0].skipped_reasons == skipped[1].skipped_reasons


def test_a_single_file_needs_no_others_and_no_processes_are_refused(tmp_path):
    lake = make_lake(tmp_path / "lake", "parquet", parts=1)
    one, four = (prepare(lake, tmp_path / f"set-{n}", processes=n) for n in (1, 4))
    assert one.counts == four.counts
    for processes in (0, 1000):
        with pytest.raises(ConfigError, match=f"processes = {processes}: must be from 1 to 128"):
            prepare(lake, tmp_path / "set", processes=processes)


def test_the_command_takes_the_number_of_processes(tmp_path, ltocf):
    lake = make_lake(tmp_path / "lake", "parquet", parts=2)
    code, out, _ = ltocf("prepare", lake, "-o", tmp_path / "set", "--processes", 2)
    assert code == 0
    assert "read: " in out


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
@pytest.mark.parametrize("everybody", [True, False])
def test_an_interrupt_ends_all_who_read_and_leaves_nothing_behind(tmp_path, everybody):
    """Ctrl-C in a terminal reaches every process; a service manager's SIGTERM the first alone."""
    lake = tmp_path / "lake"
    lake.mkdir()
    rows = pl.select(user=pl.int_range(3_000_000) % 99_991, item=pl.int_range(3_000_000) % 9973)
    for part in range(2):
        rows.write_parquet(lake / f"part-{part}.parquet")
    words = ("prepare", lake, "-o", tmp_path / "set", "--processes", "2")
    first = subprocess.Popen(
        [sys.executable, "-m", "ltocf", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(readers := readers_of(first.pid)) < 2:
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    if everybody:
        os.killpg(first.pid, signal.SIGINT)
    else:
        first.send_signal(signal.SIGTERM)
    out, err = first.communicate(timeout=60)
    assert (first.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert not any(Path(f"/proc/{reader}/exe").exists() for reader in readers)
    assert [file.name for file in tmp_path.iterdir() if file.name != "lake"] in ([], ["set.lock"])


def readers_of(process: int) -> list[int]:
    """The processes that it has started to read, without Python's own tracker of resources."""
    found = []
    for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        try:
            told = Path(f"/proc/{child}/cmdline").read_text()
        except OSError:
            continue
        if "spawn_main" in told:
            found.append(int(child))
    return found


def test_a_process_that_dies_is_told_of_and_an_error_does_not_wait_for_the_others(
    tmp_path, monkeypatch
):
    lake = make_lake(tmp_path / "lake", "csv", parts=2)
    monkeypatch.setattr(parts, "_read_part", die)
    with pytest.raises(DataError, match="a process that read some of it has ended"):
        prepare(lake, tmp_path / "set", processes=2)
    monkeypatch.setattr(parts, "_read_part", refuse_or_wait)
    with pytest.raises(DataError, match="part-0"):
        prepare(lake, tmp_path / "set", processes=2)
    assert not (tmp_path / "set").exists()


def die(log, subset, spill, answer):
    os._exit(9)


def refuse_or_wait(log, subset, spill, answer):
    if "part-0" in log.label:
        answer.send(DataError(f"{log.label}: refused"))
    else:
        time.sleep(600)
