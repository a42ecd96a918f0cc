"""The process that supervises a search: it owns the clock, the terminal and the signals, and does
not load torch.

The search runs in a separate process. It is asked to end in time, and killed if it does not. That
is safe, because the best model so far is always saved as a complete run.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import ltocf
from ltocf.errors import RunError
from ltocf.progress import Progress
from ltocf.search.process.job import ERRORS, Job

# A search is killed when it is late by this share of its budget or by these seconds, whichever is
# more.
GRACE = 0.04, 1.5
LOOK = 0.2  # seconds between looks at the clock and at signals


@dataclass
class SearchReport:
    """What a search reported until it ended."""

    ended: str = "time"  # done: by itself; time: killed because it was late; stopped: by the user
    version: int | None = None
    chosen: str = ""
    validation: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    sampled_users: int = 0  # that were tested, where there was no time for all
    tried: list[dict[str, Any]] = field(default_factory=list)
    saved: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and cells, to be printed."""
        cells = [
            [
                row["tried"],
                f"{row['seconds']:.1f}",
                *("" if row[key] is None else f"{row[key]:.4f}" for key in ("recall", "ndcg")),
                row["note"],
            ]
            for row in self.tried
        ]
        return ["tried", "seconds", "Recall@20", "NDCG@20", ""], cells

    def take_saved(self, saved: dict[str, Any]) -> None:
        self.saved.append(saved)
        self.version, self.chosen = saved["version"], saved["label"]
        if saved["recall"] is not None:
            self.validation = {"recall@20": saved["recall"], "ndcg@20": saved["ndcg"]}

    def take_done(self, done: dict[str, Any]) -> None:
        self.ended, self.metrics, self.tried = "done", done["metrics"], done["tried"]
        self.chosen, self.version = done["chosen"], done["version"]
        self.sampled_users = done["sampled_users"]


def supervise(job: Job, progress: Progress, say: Callable[[str], None]) -> SearchReport:
    """Run the job in a separate process until it ends, its time is up, or the user stops it. An
    error of that process is raised here again."""
    report, budget = SearchReport(), max(job.ends - time.time(), 0.0)
    late = max(GRACE[0] * budget, GRACE[1])
    with _stopping_on_signals() as stopped, _worker(job) as (worker, told):
        while True:
            try:
                line = told.get(timeout=LOOK)
            except queue.Empty:
                line = {}
            if line is None:
                break
            _take(line, report, progress, say)
            if stopped.is_set():
                report.ended = "stopped"
                worker.kill()
                break
            # A search that has saved nothing yet is not killed: there would be no model at all.
            if time.time() > job.ends + late and (report.saved or job.resume):
                worker.kill()
                break
    if report.ended == "time" and worker.returncode not in (0, -signal.SIGKILL):
        raise RunError(
            f"{job.output}: the search ended with code {worker.returncode}; "
            + (f"version {report.version} is saved" if report.saved else "nothing was saved")
        )
    return report


def _take(
    line: dict[str, Any], report: SearchReport, progress: Progress, say: Callable[[str], None]
) -> None:
    if "error" in line:
        kind, message = line["error"]
        raise ERRORS[kind](message)
    if "progress" in line:
        progress(*line["progress"])
    if "say" in line:
        say(line["say"])
    if "saved" in line:
        report.take_saved(line["saved"])
        say(_saved_line(line["saved"]))
    if "done" in line:
        report.take_done(line["done"])


def metric_line(metrics: dict[str, float]) -> str:
    return f"Recall@20 {metrics['recall@20']:.4f}  NDCG@20 {metrics['ndcg@20']:.4f}"


def _saved_line(saved: dict[str, Any]) -> str:
    judged = "" if saved["recall"] is None else f"  validation Recall@20 {saved['recall']:.4f}"
    return f"{saved['elapsed']:7.1f} s  version {saved['version']}: {saved['label']}{judged}"


@contextmanager
def _worker(job: Job) -> Iterator[tuple[subprocess.Popen[str], queue.Queue[Any]]]:
    """The process, and a queue of the messages that it sends; None means that it has ended."""
    home = str(Path(ltocf.__file__).parent.parent)  # wherever this package was imported from
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    worker = subprocess.Popen(
        [sys.executable, "-m", "ltocf.search.process.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # so that Ctrl-C reaches the supervisor only, which then stops it
    )
    assert worker.stdin is not None and worker.stdout is not None
    told: queue.Queue[Any] = queue.Queue()

    def listen(lines: Any) -> None:
        for line in lines:
            told.put(json.loads(line))
        told.put(None)

    listener = threading.Thread(target=listen, args=(worker.stdout,), daemon=True)
    listener.start()
    try:
        worker.stdin.write(job.to_json() + "\n")
        worker.stdin.flush()
        yield worker, told
        worker.wait()
    finally:
        if worker.poll() is None:
            worker.kill()
            worker.wait()
        listener.join()
        for pipe in (worker.stdin, worker.stdout):
            pipe.close()


@contextmanager
def _stopping_on_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, while the block runs in the main thread."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        stopped.set()

    before = {kind: signal.signal(kind, stop) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
