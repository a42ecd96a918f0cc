"""A run with new interactions: old ids keep their rows, new ones are added, a short warm fit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.ingest.display import read_display
from ltocf.data.ingest.memory import read_log
from ltocf.data.ingest.readers import LogSource
from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.splits import contains
from ltocf.errors import CheckpointError, DataError
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


@dataclass(frozen=True)
class Added:
    """What a log brought: interactions that the run did not have, and how many it had."""

    interactions: int
    repeated: int
    users: int
    items: int


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
    **columns: Any,
) -> tuple[Run, Added]:
    """The run with the log's interactions in it, written to `output` or in the old one's place.

    `columns` are those of `read_log`; `names` is a table of items to display, as for `prepare`.
    Test and validation pairs stay what they were, but for those that the log now has. A log that
    adds nothing is a DataError, and nothing is written.
    """
    path = run.path if output is None else output
    # Held from the reading to the writing: of two updates at once, one would undo the other.
    with writing(path, error=CheckpointError):
        old = run.load()
        contents = read_log(log, **columns)
        dataset, added = enlarge(run.dataset, contents.interactions)
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


def enlarge(dataset: Dataset, log: Interactions) -> tuple[Dataset, Added]:
    """The data set with the log's pairs in train, and new ids after the old ones."""
    split = dataset.split
    user_ids = split.train.user_ids.extended(log.user_ids.ids.to_list())
    item_ids = split.train.item_ids.extended(log.item_ids.ids.to_list())
    users = user_ids.find(log.user_ids.ids.to_list())[log.users]
    items = item_ids.find(log.item_ids.ids.to_list())[log.items]
    fresh = Interactions.build(users, items, user_ids, item_ids, log.timestamps)
    train, valid, test = (
        _renamed(part, user_ids, item_ids) for part in (split.train, split.valid, split.test)
    )
    fresh = fresh.select(~(contains(train, fresh) | contains(valid, fresh)))
    if not len(fresh):
        raise DataError(
            f"the log adds nothing: the run already has all of its {len(log):,} interactions"
        )
    test = test.select(~contains(fresh, test))
    added = Added(
        interactions=len(fresh),
        repeated=len(log) - len(fresh),
        users=len(user_ids) - split.train.n_users,
        items=len(item_ids) - split.train.n_items,
    )
    origin = dict(dataset.origin)
    origin["updates"] = [*origin.get("updates", []), asdict(added)]
    names = _padded(dataset.item_names, added.items)
    whole = replace(split, train=train.union(fresh), valid=valid, test=test)
    return replace(dataset, split=whole, item_names=names, origin=origin), added


def rename_items(dataset: Dataset, names: str | Path, log_column: str) -> Dataset:
    """The data set with the display columns of a table of items, and the old where it has none."""
    shown, _ = read_display(names, dataset.split.train.item_ids.ids, log_column)
    old = dataset.item_names
    if old is not None:
        for column in old.get_columns():
            if column.name in shown.columns:
                column = shown[column.name].cast(column.dtype, strict=False).fill_null(column)
            shown = shown.with_columns(column)
    return replace(dataset, item_names=shown)


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


def _renamed(part: Interactions, user_ids: IdMap, item_ids: IdMap) -> Interactions:
    return Interactions(part.users, part.items, user_ids, item_ids, part.timestamps)


def _padded(names: pl.DataFrame | None, rows: int) -> pl.DataFrame | None:
    if names is None or not rows:
        return names
    return pl.concat([names, names.clear(rows)])
