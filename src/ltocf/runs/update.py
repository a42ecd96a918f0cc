"""Add new interactions to a run: old ids keep their rows, new ones are added, and training goes on
for a few epochs from the old weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.ingest.byte_files import log_digest
from ltocf.data.ingest.growth import Growth, enlarge, extend_catalogue, read_more
from ltocf.data.ingest.leaving import without_users
from ltocf.data.ingest.readers import LogSource
from ltocf.data.interactions import Id
from ltocf.errors import RunError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.runs.run import Run, as_run
from ltocf.runs.versions import (
    MARKER,
    SEARCH,
    clear_unused,
    current_path,
    keep_candidate,
    next_version,
    root_of,
    use_version,
    version_path,
)
from ltocf.scorers.complete import complete
from ltocf.storage.files import real, refuse_occupied, remove, writing
from ltocf.training.fitting import fit
from ltocf.training.protocol import list_lengths, question

EPOCHS = 2
SLOWER = 0.25  # the learning rate of an update, relative to that of the first training


def update_run(
    run: Run | str | Path,
    log: LogSource,
    output: str | Path | None = None,
    *,
    epochs: int = EPOCHS,
    learning_rate: float | None = None,
    names: LogSource | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
    text_ids: bool = False,
    every_row_liked: bool = False,
    forgotten: Callable[[Iterable[Id]], Collection[Id]] = lambda ids: (),
    **reading: Any,
) -> tuple[Run, Growth]:
    """The run with the log's interactions added, saved in `output` or as a new version of the run.

    The log is read as the run's own log was: `reading` holds fields of `Reading` that differ, and
    `every_row_liked` ignores the threshold. `names` is a table of items and their attributes, as
    for `prepare`. If ids are numbers, a text id is refused unless `text_ids` turns all into text.
    `forgotten` selects the users of the log who asked to be forgotten; their rows are left out.
    Test and validation pairs stay as they were, except those that the log now has. If the log
    adds nothing, nothing is written, and the run is returned as it is.
    """
    updated = as_run(run)
    try:
        return _update(
            updated,
            log,
            None if output is None else Path(output),
            epochs=epochs,
            learning_rate=learning_rate,
            names=names,
            overwrite=overwrite,
            progress=progress,
            text_ids=text_ids,
            every_row_liked=every_row_liked,
            forgotten=forgotten,
            **reading,
        )
    except _NothingNew as nothing:
        return updated, nothing.growth


class _NothingNew(Exception):
    """Ends an update that would change nothing, before anything is written."""

    def __init__(self, growth: Growth) -> None:
        super().__init__()
        self.growth = growth


def _update(
    run: Run,
    log: LogSource,
    output: Path | None,
    *,
    epochs: int,
    learning_rate: float | None,
    names: LogSource | None,
    overwrite: bool,
    progress: Progress,
    text_ids: bool,
    every_row_liked: bool,
    forgotten: Callable[[Iterable[Id]], Collection[Id]],
    **reading: Any,
) -> tuple[Run, Growth]:
    with updating(run, output) as path:
        refuse_occupied(path, marker=MARKER, overwrite=overwrite, error=RunError)
        contents = read_more(run.dataset, log, every_row_liked=every_row_liked, **reading)
        digest, logs = log_digest(log), list(run.dataset.origin.get("logs", []))
        if digest in logs and names is None:  # this log was added before; weights would count twice
            raise _NothingNew(Growth(0, len(contents.interactions), 0, 0))
        gone = forgotten(contents.interactions.user_ids.ids.to_list())
        news = (
            without_users(contents.interactions, gone),
            None if contents.unliked is None else without_users(contents.unliked, gone),
            None if contents.taken is None else without_users(contents.taken, gone),
        )
        dataset, added = enlarge(run.dataset, *news, text_ids=text_ids)
        if added.nothing and dataset.split.train.weights is None and names is None:
            raise _NothingNew(added)
        if digest is not None:
            origin = {**dataset.origin, "logs": [*logs, digest]}
            dataset = replace(dataset, origin=origin)
        if names is not None:
            dataset = extend_catalogue(dataset, names, contents.columns.item, text_ids=text_ids)
        model = warm_start(
            run, dataset, epochs=epochs, learning_rate=learning_rate, progress=progress
        )
        return store_update(run, path, dataset, model, overwrite=overwrite), added


@contextmanager
def updating(run: Run, output: Path | None = None, *, candidate: bool = False) -> Iterator[Path]:
    """The directory that an update of a run goes to: `output`, or a new version of the run. If the
    body succeeds, the version is used from then on, or kept as a `candidate` beside the one in use.

    The lock is held from reading to writing, since of two updates at once, one would undo the
    other.
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
        (keep_candidate if candidate else use_version)(root, version)
        # The search has older data, perhaps with people who asked to be forgotten since.
        remove(root / SEARCH)


def warm_start(
    run: Run,
    dataset: Dataset,
    *,
    epochs: int = EPOCHS,
    learning_rate: float | None = None,
    kept_users: NDArray[np.bool_] | None = None,
    progress: Progress = silent,
) -> Model:
    """The run's model, trained for a few more epochs on the changed data."""
    usual = run.config.train.learning_rate_for(run.dataset.split.seen.pairs_per_node)
    # Slower than the first training: the weights are near an optimum, and two epochs at the full
    # rate would move them away from it.
    rate = learning_rate or SLOWER * usual
    changes: dict[str, Any] = {"epochs": epochs, "learning_rate": rate}
    if run.config.train.refit:  # it has learned from the validation pairs, so they cannot choose
        changes["protocol"] = "fixed"
    settings = run.config.train.model_copy(update=changes)
    config = run.config.model_copy(update={"train": settings})
    return warm_fit(run.load(), config, dataset, progress, kept_users)


def store_update(
    run: Run, path: Path, dataset: Dataset, model: Model, *, overwrite: bool = False
) -> Run:
    """A new run directory with the updated model, its test metrics, and the run's original
    settings, with which it can be trained again from scratch."""
    split = dataset.split
    metrics: Metrics = {}
    if len(split.test):
        likeness = dataset.catalogue.likeness
        asked = question(complete(model.scorer(), model.people), split)
        metrics = evaluate(*asked, list_lengths(split), likeness=likeness)
    return Run.store(path, run.config, dataset, model, metrics, overwrite=overwrite)


def warm_fit(
    old: Model,
    config: RunConfig,
    dataset: Dataset,
    progress: Progress = silent,
    kept_users: NDArray[np.bool_] | None = None,
) -> Model:
    """A model of the enlarged data that starts from the old one's weights; a closed form is solved
    again."""
    weights = old.state_dict()

    def start(model: Model) -> None:
        graphs = old.graph, model.graph
        model.load_state_dict(grow(weights, model.state_dict(), model.rows, *graphs, kept_users))

    return fit(dataset, config, start=start, progress=progress).model


def grow(
    old: dict[str, Tensor],
    new: dict[str, Tensor],
    rows: Mapping[str, str],
    before: BipartiteGraph,
    after: BipartiteGraph,
    kept_users: NDArray[np.bool_] | None = None,
) -> dict[str, Tensor]:
    """Tensors of the new sizes, with the old rows in their new places and zeros elsewhere. `rows`
    says what the rows of each tensor stand for.

    To a graph filter, a new user whose own vector is zero is determined by their history alone. The
    rows of users who are not kept are removed.
    """
    kept = np.ones(before.n_users, dtype=bool) if kept_users is None else kept_users
    users, items = np.flatnonzero(kept), np.arange(before.n_items)
    moves = {  # old row numbers, and the new ones
        "users": (users, np.arange(len(users))),
        "items": (items, items),
        "nodes": (
            np.concatenate([users, before.n_users + items]),
            np.concatenate([np.arange(len(users)), after.n_users + items]),
        ),
    }
    grown = dict(old)
    for name in rows.keys() & new.keys():
        source, places = (torch.from_numpy(each) for each in moves[rows[name]])
        grown[name] = torch.zeros_like(new[name]).index_copy_(0, places, old[name][source])
    return grown
