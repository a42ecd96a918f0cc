"""Background work: switching to new versions of a run, and regular updates from events."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from ltocf.errors import LtocfError
from ltocf.runs.run import Run
from ltocf.runs.versions import in_use, version_path
from ltocf.service.engine import Engine
from ltocf.service.experiments.trial import Trial
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore
from ltocf.storage.digests import FILE as DIGESTS

log = logging.getLogger("ltocf.service")
LOOK_SECONDS = 1.0  # between two checks whether the run has another version
END_SECONDS = 20.0  # for an update to end after the service ends


def digest_of(path: Path) -> str:
    """Identifies a version by its contents, since a run that was trained again in the same place
    has the same number."""
    try:
        return hashlib.sha256((path / DIGESTS).read_bytes()).hexdigest()[:16]
    except FileNotFoundError:
        return ""


def load_served(root: Path, store: EventStore, version: int | None = None) -> ServedModel:
    """A version of a run, by default the one in use, with the last event of the store that it has
    learned from."""
    version = in_use(root).current if version is None else version
    path = version_path(root, version)
    return ServedModel.of_run(Run.at(path), str(version), store, digest_of(path))


def follow(root: Path, live: Engine, trial: Trial) -> None:
    """Switch to the version that the run has in use, within a second of a change."""
    said = ""
    while not live.closed.wait(LOOK_SECONDS):
        try:
            current = in_use(root).current
            wanted = str(current), digest_of(version_path(root, current))
            if wanted != (live.served.version, live.served.digest):
                live.swap(load_served(root, live.store))
                log.info(f"now serving version {live.served.version}")
            trial.follow(live, load_served)
            said, live.run_problem = "", None
        except (LtocfError, OSError, SQLAlchemyError) as error:
            live.run_problem = f"still serving version {live.served.version}: {error}"
            if live.run_problem != said:  # log it once, not each second
                log.warning(live.run_problem)
            said = live.run_problem


def update_regularly(run: Path, store: str, seconds: float, ended: threading.Event) -> None:
    """Run an update from events regularly, in a process of its own, until `ended`."""
    command = [sys.executable, "-m", "ltocf", "update", str(run)]
    environment = os.environ | {"LTOCF_EVENTS": store}
    while not ended.wait(seconds):
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        said = threading.Thread(target=_tell, args=(process,), daemon=True)
        said.start()
        while said.is_alive() and not ended.wait(0.1):
            pass
        # The service ends, and so does the update; it leaves nothing half-done.
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _tell(process: subprocess.Popen[str]) -> None:
    out, err = process.communicate()
    lines = (err if process.returncode else out).strip().splitlines()
    log.info(f"update: {lines[-1] if lines else f'exit code {process.returncode}'}")
