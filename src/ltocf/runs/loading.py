"""A run and what is in it, both of the same moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ltocf.digests import ATTEMPTS
from ltocf.runs.run import Run
from ltocf.runs.run_files import ReplacedError
from ltocf.scorers.scorer import Scorer

if TYPE_CHECKING:
    from ltocf.models.base import Model

Found = TypeVar("Found")


def load_run(path: Path) -> tuple[Run, Model]:
    """A trained run and its model, both of the same moment."""
    return _at_once(path, lambda run: run.load())


def load_scorer(path: Path) -> tuple[Run, Scorer]:
    """A trained run and what answers questions about it, both of the same moment."""
    return _at_once(path, lambda run: run.scorer())


def _at_once(path: Path, read: Callable[[Run], Found]) -> tuple[Run, Found]:
    for _ in range(ATTEMPTS):
        run = Run.open(path)
        try:
            return run, read(run)
        except ReplacedError:
            continue
    raise ReplacedError(f"{path}: other processes replace it again and again; try later")


def as_run(run: Run | str | Path) -> Run:
    """The run itself, or the one at a path."""
    return run if isinstance(run, Run) else Run.open(Path(run))
