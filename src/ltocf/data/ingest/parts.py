"""The files of a log read by several processes, each a share of them in their order.

Users and items are numbered after all processes have read, in the order of their ids, so that the
data set is the same to the last byte as with one process.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from ltocf.data.ingest.cells.values import Codes
from ltocf.data.ingest.log import Log
from ltocf.data.pairs.columns import Arrays, ColumnFiles
from ltocf.errors import DataError, LtocfError
from ltocf.machine.processes import end_with_parent, start_whole
from ltocf.machine.threads import usable_cores
from ltocf.progress import Progress

CONTEXT = multiprocessing.get_context("spawn")
LOOK_SECONDS = 0.2  # between two checks of the processes' progress
Types = dict[str, DTypeLike]


@dataclass(frozen=True)
class PartOfLog:
    """What a process has read: its counts, and the ids of its codes in their order."""

    log: Log
    ids: dict[str, pl.Series]
    noted: dict[str, NDArray[np.int64]]


@dataclass(frozen=True)
class ReadRows:
    """The rows that a process has written, and for each of its codes that of the whole log."""

    spill: ColumnFiles
    codes: dict[str, NDArray[np.uint32]]

    def chunks(self, rows: int) -> Iterator[Arrays]:
        """Some rows at a time, in the codes of the whole log."""
        for chunk in self.spill.chunks(rows):
            yield chunk | {role: codes[chunk[role]] for role, codes in self.codes.items()}

    def remove(self) -> None:
        self.spill.remove()


def read_in_parts(
    log: Log,
    subset: int,
    processes: int,
    path: Path,
    types: Types,
    total: int | None,
    progress: Progress,
) -> list[ReadRows]:
    """All rows of the log, written to files beginning with `path` by at most so many processes; the
    log's counts and codes are then those of all of it."""
    shares = [
        share for share in np.array_split(np.arange(len(log.tables)), processes) if len(share)
    ]
    spills = [ColumnFiles(path.with_name(f"{path.name}-{n}"), types) for n in range(len(shares))]
    jobs = [
        (_share_of(log, share), subset, spill) for share, spill in zip(shares, spills, strict=True)
    ]
    parts = []
    with _readers(jobs) as answers:
        for answer in answers:  # in the order of the files: the first error is the one to tell
            while not answer.poll(LOOK_SECONDS):
                progress("reading", sum(map(len, spills)), total)
            parts.append(_received(answer, log.label))
    found = [ReadRows(spill, _joined(log, part)) for spill, part in zip(spills, parts, strict=True)]
    log.check_read()
    return found


@contextmanager
def _readers(jobs: Sequence[tuple[Log, int, ColumnFiles]]) -> Iterator[list[Connection]]:
    """What the answers of processes, one for each job, come from. None outlives the block: where
    one has failed, or Ctrl-C was pressed, nobody waits for what the others still have to read."""
    running, answers = list[SpawnProcess](), list[Connection]()

    def start() -> None:
        for job in jobs:
            answer, theirs = CONTEXT.Pipe(duplex=False)
            answers.append(answer)
            process = CONTEXT.Process(target=_read_part, args=(*job, theirs), daemon=True)
            process.start()
            running.append(process)
            theirs.close()  # so that the end of the process is the end of the pipe

    try:
        with _few_threads(len(jobs)):
            start_whole(start)
        yield answers
    finally:
        for process in running:
            process.kill()  # what they have written is removed with the folder it is in
        for process in running:
            process.join()
        for answer in answers:
            answer.close()


@contextmanager
def _few_threads(processes: int) -> Iterator[None]:
    """Processes that are started in the block share the cores: polars reads this when it loads."""
    name = "POLARS_MAX_THREADS"
    before = os.environ.get(name)
    os.environ[name] = before or str(max(1, usable_cores() // processes))
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


def _share_of(log: Log, share: NDArray[np.int64]) -> Log:
    """The log with some of its tables, without what must stay in this process."""
    return replace(
        log,
        tables=[replace(log.tables[n], workspace=None) for n in share],
        moments=[log.moments[n] for n in share] if log.moments else [],
        codes={},
        reasons=[],
    )


def _read_part(log: Log, subset: int, spill: ColumnFiles, answer: Connection) -> None:
    end_with_parent()
    try:
        answer.send(_part(log, subset, spill))
    except (LtocfError, OSError, MemoryError) as failure:
        answer.send(failure)


def _part(log: Log, subset: int, spill: ColumnFiles) -> PartOfLog:
    log.codes = {"user": Codes(), "item": Codes()}
    for rows in log.rows_of_tables(subset):
        spill.append(rows)
    ids = {role: codes.ids() for role, codes in log.codes.items()}
    noted = {role: codes.noted for role, codes in log.codes.items()}
    return PartOfLog(replace(log, tables=[], moments=[], codes={}), ids, noted)


def _received(answer: Connection, label: str) -> PartOfLog:
    try:
        part = answer.recv()
    except EOFError:
        raise DataError(
            f"{label}: a process that read some of it has ended; is there enough memory? "
            "Read it with processes=1 (--processes 1)"
        ) from None
    if isinstance(part, BaseException):
        raise part
    assert isinstance(part, PartOfLog)
    return part


def _joined(log: Log, part: PartOfLog) -> dict[str, NDArray[np.uint32]]:
    """Add a part's counts and ids to the log; the log's code of each of the part's codes."""
    log.add_counts(part.log)
    found = {}
    for role, codes in log.codes.items():
        ids, noted = part.ids[role], part.noted[role]
        found[role] = np.zeros(noted[-1] + 1 if len(noted) else 0, np.uint32)
        found[role][noted] = codes.note(ids.cast(codes.dtype).to_physical())
    return found
