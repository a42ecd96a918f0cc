"""Load a run together with its contents, consistently even while it is being replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ltocf.runs.run import Run
from ltocf.runs.run_files import ReplacedError
from ltocf.scorers.scorer import Scorer
from ltocf.storage.digests import ATTEMPTS

if TYPE_CHECKING:
    from ltocf.models.base import Model

Contents = TypeVar("Contents")


def load_run(path: Path) -> tuple[Run, Model]:
    """A trained run and its model, from the same version of the files."""
    return _at_once(path, lambda run: run.load())


def load_scorer(path: Path) -> tuple[Run, Scorer]:
    """A trained run and its scorer, from the same version of the files."""
    return _at_once(path, lambda run: run.scorer())


def _at_once(path: Path, read: Callable[[Run], Contents]) -> tuple[Run, Contents]:
    for _ in range(ATTEMPTS):
        run = Run.open(path)
        try:
            return run, read(run)
        except ReplacedError:
            continue
    raise ReplacedError(f"{path}: other processes keep replacing it; try again later")


def as_run(run: Run | str | Path) -> Run:
    """The run itself, or the one at a path."""
    return run if isinstance(run, Run) else Run.open(Path(run))
