"""A run with new interactions: old ids keep their rows, new ones are added, a short warm fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.ingest.growth import Added, enlarge, read_more, rename_items
from ltocf.data.ingest.readers import LogSource
from ltocf.errors import RunError
from ltocf.files import real, refuse_occupied, writing
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import evaluate
from ltocf.runs.fitting import fit
from ltocf.runs.pipeline import TEST_KS
from ltocf.runs.run import Run
from ltocf.runs.versions import (
    MARKER,
    clear_unused,
    current_path,
    next_version,
    root_of,
    use_version,
    version_path,
)

EPOCHS = 2
SLOWER = 0.25  # the learning rate of a warm fit, relative to the first one's


def update_run(
    run: Run,
    log: LogSource,
    output: Path | None = None,
    *,
    epochs: int = EPOCHS,
    learning_rate: float | None = None,
    names: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
    text_ids: bool = False,
    every_row_liked: bool = False,
    **reading: Any,
) -> tuple[Run, Added]:
    """The run with the log's interactions in it, written to `output` or as a version in its place.

    The log is read as the run's own was: `reading` holds fields of `Reading` that differ, and
    `every_row_liked` forgets the threshold. `names` is a table of items to display, as for
    `prepare`. One id of text among numbers is refused unless `text_ids` turns all into text.
    Test and validation pairs stay what they were, but for those that the log now has. A log that
    adds nothing is a DataError, and nothing is written.
    """
    with updating(run, output) as path:
        refuse_occupied(path, marker=MARKER, overwrite=overwrite, error=RunError)
        contents = read_more(run.dataset, log, every_row_liked=every_row_liked, **reading)
        news = contents.interactions, contents.unliked
        dataset, added = enlarge(run.dataset, *news, text_ids=text_ids)
        if names is not None:
            dataset = rename_items(dataset, names, contents.columns.item)
        refitted = refit(
            run, dataset, epochs=epochs, learning_rate=learning_rate, progress=progress
        )
        return store_update(run, path, dataset, refitted, overwrite=overwrite), added


@contextmanager
def updating(run: Run, output: Path | None = None) -> Iterator[Path]:
    """Where the update of a run goes: to `output`, or in place to a new version, which is used from
    now on if the body succeeds.

    Held from the reading to the writing: of two updates at once, one would undo the other.
    """
    root = root_of(run.path)
    if output is not None and real(output) not in (real(root), real(run.path)):
        with writing(output, error=RunError):
            yield output
        return
    with writing(root, error=RunError):
        if current_path(root) != run.path:
            raise RunError(f"{root}: was updated by another process; open it again")
        clear_unused(root)
        version = next_version(root)
        yield version_path(root, version)
        use_version(root, version)


def refit(
    run: Run,
    dataset: Dataset,
    *,
    epochs: int = EPOCHS,
    learning_rate: float | None = None,
    kept_users: NDArray[np.bool_] | None = None,
    progress: Progress = silent,
) -> Model:
    """The run's model, fitted a little more on other data than it had."""
    usual = run.config.train.learning_rate_for(run.dataset.split.seen.pairs_per_node)
    rate = learning_rate or SLOWER * usual
    changes: dict[str, Any] = {"epochs": epochs, "learning_rate": rate}
    if run.config.train.refit:  # it has learned from the validation pairs too
        changes["protocol"] = "fixed"
    settings = run.config.train.model_copy(update=changes)
    config = run.config.model_copy(update={"train": settings})
    return warm_fit(run.load(), config, dataset, progress, kept_users)


def store_update(
    run: Run, path: Path, dataset: Dataset, model: Model, *, overwrite: bool = False
) -> Run:
    """A new run directory with the refitted model, its test metrics, and the run's own settings:
    they are how to train it again from the start."""
    split = dataset.split
    metrics = evaluate(model.scorer(), split.test, split.seen, TEST_KS) if len(split.test) else {}
    return Run.store(path, run.config, dataset, model, metrics, overwrite=overwrite)


def warm_fit(
    old: Model,
    config: RunConfig,
    dataset: Dataset,
    progress: Progress = silent,
    kept_users: NDArray[np.bool_] | None = None,
) -> Model:
    """A model of the enlarged data that starts from the old one's weights; a closed form is
    computed anew."""
    weights = old.state_dict()

    def start(model: Model) -> None:
        model.load_state_dict(grow(weights, model.state_dict(), old.graph, model.graph, kept_users))

    return fit(dataset, config, start=start, progress=progress).model


def grow(
    old: dict[str, Tensor],
    new: dict[str, Tensor],
    before: BipartiteGraph,
    after: BipartiteGraph,
    kept_users: NDArray[np.bool_] | None = None,
) -> dict[str, Tensor]:
    """Tensors of the new shapes with the old values where they belong and zeros elsewhere.

    A new user whose own vector is zero is, to a graph filter, what their history makes of them. Of
    a user who is not kept, nothing is.
    """
    kept = np.ones(before.n_users, dtype=bool) if kept_users is None else kept_users
    users, items = np.flatnonzero(kept), np.arange(before.n_items)
    moves = {  # from where to where, by the size of an axis
        before.n_users: (users, np.arange(len(users))),
        before.n_nodes: (
            np.concatenate([users, before.n_users + items]),
            np.concatenate([np.arange(len(users)), after.n_users + items]),
        ),
    }
    grown = {}
    for name, target in new.items():
        value = old[name]
        for axis, (size, wanted) in enumerate(zip(value.shape, target.shape, strict=True)):
            if size != wanted or (size == before.n_nodes and not kept.all()):
                source, places = moves.get(size, (np.arange(size), np.arange(size)))
                moved = value.index_select(axis, torch.from_numpy(source))
                empty = value.new_zeros([*value.shape[:axis], wanted, *value.shape[axis + 1 :]])
                value = empty.index_copy_(axis, torch.from_numpy(places), moved)
        grown[name] = value
    return grown
