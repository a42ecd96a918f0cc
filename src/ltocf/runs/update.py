"""A run with new interactions: old ids keep their rows, new ones are added, a short warm fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.ingest.growth import Added, enlarge, read_more, rename_items
from ltocf.data.ingest.readers import LogSource
from ltocf.errors import CheckpointError
from ltocf.files import writing
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import evaluate
from ltocf.runs.fitting import fit
from ltocf.runs.pipeline import TEST_KS
from ltocf.runs.run import Run

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
    """The run with the log's interactions in it, written to `output` or in the old one's place.

    The log is read as the run's own was: `reading` holds fields of `Reading` that differ, and
    `every_row_liked` forgets the threshold. `names` is a table of items to display, as for
    `prepare`. One id of text among numbers is refused unless `text_ids` turns all into text.
    Test and validation pairs stay what they were, but for those that the log now has. A log that
    adds nothing is a DataError, and nothing is written.
    """
    path = run.path if output is None else output
    # Held from the reading to the writing: of two updates at once, one would undo the other.
    with writing(path, error=CheckpointError):
        old = run.load()
        contents = read_more(run.dataset, log, every_row_liked=every_row_liked, **reading)
        news = contents.interactions, contents.unliked
        dataset, added = enlarge(run.dataset, *news, text_ids=text_ids)
        if names is not None:
            dataset = rename_items(dataset, names, contents.columns.item)
        rate = learning_rate or SLOWER * run.config.train.learning_rate
        settings = run.config.train.model_copy(update={"epochs": epochs, "learning_rate": rate})
        model = warm_fit(old, run.config.model_copy(update={"train": settings}), dataset, progress)
        split = dataset.split
        metrics = (
            evaluate(model.scorer(), split.test, split.seen, TEST_KS) if len(split.test) else {}
        )
        replaced = output is None or output.resolve() == run.path.resolve()
        # The run keeps its own settings: they are how to train it again from the start.
        stored = Run.store(
            path, run.config, dataset, model, metrics, overwrite=overwrite or replaced
        )
        return stored, added


def warm_fit(old: Model, config: RunConfig, dataset: Dataset, progress: Progress = silent) -> Model:
    """A model of the enlarged data that starts from the old one's weights; a closed form is
    computed anew."""
    weights = old.state_dict()

    def start(model: Model) -> None:
        model.load_state_dict(grow(weights, model.state_dict(), old.graph, model.graph))

    return fit(dataset, config, start=start, progress=progress).model


def grow(
    old: dict[str, Tensor], new: dict[str, Tensor], before: BipartiteGraph, after: BipartiteGraph
) -> dict[str, Tensor]:
    """Tensors of the new shapes with the old values where they belong and zeros elsewhere.

    A new user whose own vector is zero is, to a graph filter, what their history makes of them.
    """
    nodes = np.arange(before.n_nodes)
    nodes[before.n_users :] += after.n_users - before.n_users
    grown = {}
    for name, target in new.items():
        value = old[name]
        for axis, (size, wanted) in enumerate(zip(value.shape, target.shape, strict=True)):
            if size != wanted:
                places = nodes if size == before.n_nodes else np.arange(size)
                shape = [*value.shape[:axis], wanted, *value.shape[axis + 1 :]]
                empty = value.new_zeros(shape)
                value = empty.index_copy_(axis, torch.from_numpy(places), value)
        grown[name] = value
    return grown
