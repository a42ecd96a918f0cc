"""The process that searches: it reads a Job, saves versions, and reports to its supervisor.

It can be killed at any moment: the best model so far is always saved as a complete run. When its
supervisor ends, it ends too.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ltocf.data.sources.catalog import load_dataset
from ltocf.data.sources.text_folder import order_line, ordered_by
from ltocf.deadlines import Deadline
from ltocf.errors import LtocfError, RunError
from ltocf.machine.threads import use_threads
from ltocf.progress import OutOfTime
from ltocf.ranking.metrics import Metrics, evaluate, testable_users
from ltocf.runs.run import keep_events
from ltocf.runs.settings import make_config
from ltocf.runs.versions import MARKER
from ltocf.scorers.complete import complete
from ltocf.search.candidates import check_given
from ltocf.search.process.job import Job
from ltocf.search.process.keeping import RunKeeper
from ltocf.search.results import SearchResult
from ltocf.search.searching import Search
from ltocf.storage.files import refuse_occupied, writing
from ltocf.training.protocol import list_lengths, question

EVERY = 0.25  # seconds between reports of progress
HURRY = 0.7  # of the time left is planned for the test, since an estimate may be exceeded
FEWEST_TESTED = 1000  # users, however little time is left

Tell = Callable[[dict[str, Any]], None]


def work(job: Job, tell: Tell) -> None:
    """Search until the job's end. Each report to `tell` is a JSON object."""
    root = Path(job.output)
    if not job.resume:
        check_given(make_config(job.settings))  # a wrong setting fails before anything is written
    with writing(root, error=RunError):
        deadline = Deadline(job.seconds, passed=time.time() - job.began, alarms=True)
        keeper = _keeper(job, root, tell)
        search = Search(
            keeper.dataset,
            keeper.config,
            deadline,
            journal=keeper.journal,
            keeper=keeper,
            progress=_progress(tell),
        )
        keeper.clock = lambda: search.before + deadline.elapsed
        found = search.run()
        metrics, sampled = _test(found, search, deadline)
        # A sample's metrics are not saved: a later comparison of runs should use all users.
        keeper.finish({} if sampled else metrics, found.as_json())
        label, version = found.choice.label, keeper.version
        done = {"tried": found.as_json(), "metrics": metrics, "chosen": label, "version": version}
        done |= {"sampled_users": sampled}
        tell({"done": done})


def _keeper(job: Job, root: Path, tell: Tell) -> RunKeeper:
    if job.resume:
        return RunKeeper.resume(root, lambda saved: tell({"saved": asdict(saved)}))
    refuse_occupied(root, marker=MARKER, overwrite=job.overwrite, error=RunError)
    keep_events(root)
    config = make_config(job.settings)
    dataset = load_dataset(config.dataset, ordered=ordered_by(job.order))
    if line := order_line(dataset):
        tell({"say": line})
    return RunKeeper(
        root,
        config,
        dataset,
        overwrite=job.overwrite,
        tell=lambda saved: tell({"saved": asdict(saved)}),
    )


def _test(found: SearchResult, search: Search, deadline: Deadline) -> tuple[Metrics, int]:
    """Test the model that was found, once, if there are test pairs and time is left: on all users,
    or on as many as there is time for. Returns the number of users if they are a sample."""
    split = found.dataset.split
    if not len(split.test):
        return {}, 0
    scorer, wanted, seen = question(complete(found.model.scorer(), found.model.people), split)
    ks, everybody = list_lengths(split), len(testable_users(wanted))
    metrics, tested, most = Metrics(), 0, FEWEST_TESTED
    try:
        with deadline.limit(deadline.left, search.progress) as progress:
            while tested < min(most, everybody):  # a few first, to see how long they take
                began, users = time.monotonic(), testable_users(wanted, most, found.config.seed)
                metrics = evaluate(scorer, wanted, seen, ks, users=users, progress=progress)
                tested = len(users)
                seconds = max(time.monotonic() - began, 1e-3)
                most = int(HURRY * deadline.left / seconds * tested)
    except OutOfTime:
        pass
    return metrics, tested if tested < everybody else 0


def _progress(tell: Tell) -> Callable[..., None]:
    last = 0.0

    def told(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            tell({"progress": [stage, done, total, note]})

    return told


def _leave_with_watcher() -> None:
    sys.stdin.read()  # returns when the supervisor ends, which closes the pipe
    os._exit(1)


def main() -> None:
    # What libraries print must not be mistaken for reports.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def tell(what: dict[str, Any]) -> None:
        with lock:
            print(json.dumps(what), file=channel, flush=True)

    job = Job.read(sys.stdin.readline())
    threading.Thread(target=_leave_with_watcher, daemon=True).start()
    use_threads(job.threads)
    code = 0
    try:
        work(job, tell)
    except LtocfError as error:
        tell({"error": [type(error).__name__, str(error)]})
        code = 2
    sys.stderr.flush()
    os._exit(code)  # without waiting for threads that libraries have started


if __name__ == "__main__":
    main()
