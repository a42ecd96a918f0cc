"""fit(): the one way from data and settings to a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ltocf.available import require_memory
from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split, hold_out_validation
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.runs.records import AfterEpoch, EpochRecord, TrainState
from ltocf.runs.training import train


@dataclass(frozen=True)
class Fit:
    """A fitted model, the data as they were cut for it, and how training went."""

    model: Model
    dataset: Dataset
    records: list[EpochRecord]


def cut_for(config: RunConfig, dataset: Dataset) -> Dataset:
    """The data set with a validation set to choose the epoch by, or with all of train where none
    is needed."""
    return replace(dataset, split=_split_for(config, dataset.split))


def _split_for(config: RunConfig, split: Split) -> Split:
    if config.train.protocol != "validation":
        nothing = split.valid.select(np.zeros(len(split.valid), dtype=bool))
        return replace(split, train=split.seen, valid=nothing)
    if len(split.valid):
        return split
    latest = config.train.validation_cut == "latest"
    return hold_out_validation(split, config.train.validation, seed=config.seed, latest=latest)


def held_out_of(config: RunConfig, split: Split) -> Interactions | None:
    """What the epoch is chosen by: validation, nothing, or (as often published) the test set.

    Nothing also where nothing could be held out, as nobody and no item has two interactions.
    """
    choices = {"validation": split.valid, "fixed": None, "best-test-epoch": split.test}
    held_out = choices[config.train.protocol]
    return held_out if held_out is not None and len(held_out) else None


def build(config: RunConfig, dataset: Dataset, graph: BipartiteGraph | None = None) -> Model:
    """The model of these settings on `dataset.split.train`, not yet fitted."""
    graph = graph or BipartiteGraph(dataset.split.train)
    return build_model(graph, config.model_name, config.model_options)


def require_room(model: Model) -> None:
    """A ConfigError if fitting the model will need more memory than there is."""
    require_memory(
        model.bytes_to_fit(),
        f"fitting {type(model).__name__} to {model.graph.n_users:,} users and "
        f"{model.graph.n_items:,} items",
        "use a smaller dim, another model or fewer items (prepare --min-user --min-item)",
    )


def fit(
    dataset: Dataset,
    config: RunConfig,
    *,
    model: Model | None = None,
    start: Callable[[Model], None] | None = None,
    state: TrainState | None = None,
    progress: Progress = silent,
    after_epoch: AfterEpoch = lambda state, record: None,
) -> Fit:
    """Fit what `config` asks for to `dataset`, which `cut_for` has cut.

    `model` is the one that `build` made, if somebody has. `start` sets the parameters that
    training begins with, which are drawn otherwise. With `state`, as `after_epoch` was given it,
    an interrupted training goes on.
    """
    model = model or build(config, dataset)
    require_room(model)
    model.solve_(config.seed)
    records: list[EpochRecord] = []
    if model.trained:
        if state is None:
            start(model) if start is not None else model.draw_(config.seed)
        records = train(
            model,
            config.train,
            config.loss,
            seed=config.seed,
            held_out=held_out_of(config, dataset.split),
            state=state,
            progress=progress,
            after_epoch=after_epoch,
        )
    return Fit(model, dataset, records)
