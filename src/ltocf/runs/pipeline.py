"""From settings to a finished run: data -> graph -> model -> training -> test -> run directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import Tensor

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import Split, hold_out_validation
from ltocf.errors import CheckpointError, ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.base import Model
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.runs.curves import draw_curves
from ltocf.runs.run import Run
from ltocf.runs.training import EpochRecord, Progress, TrainState, fit

TEST_KS = (10, 20, 50)


def start_run(
    config: RunConfig, output: Path, *, dataset: Dataset | None = None, overwrite: bool = False
) -> Run:
    """A run directory with everything checked and nothing trained."""
    dataset = dataset or load_dataset(config.dataset)
    dataset = replace(dataset, split=split_for(config, dataset.split))
    # A wrong setting must fail before anything is written.
    model = build_model(
        BipartiteGraph(dataset.split.train), config.model_name, config.model_options
    )
    if (init := initial_weights(config, dataset)) is not None:
        model.start_from_(init)
    return Run.create(output, config, dataset, overwrite=overwrite)


def initial_weights(config: RunConfig, dataset: Dataset) -> dict[str, Tensor] | None:
    """The weights of the run at `config.init`, if any. It must have seen the same training pairs:
    one that has seen more would carry what is held out here into the new model."""
    if config.init is None:
        return None
    run = Run.open(Path(config.init))
    theirs, ours = run.dataset.split.train, dataset.split.train
    same_ids = theirs.user_ids == ours.user_ids and theirs.item_ids == ours.item_ids
    if not same_ids or theirs.fingerprint != ours.fingerprint:
        raise ConfigError(
            f"init = {config.init!r} was trained on other pairs; train it on the same data set "
            "with the same train.protocol, train.validation and seed"
        )
    return run.load().state_dict()


def split_for(config: RunConfig, split: Split) -> Split:
    """With a validation set to choose the epoch by, or with all of train where none is needed."""
    if config.train.protocol != "validation":
        nothing = split.valid.select(np.zeros(len(split.valid), dtype=bool))
        return replace(split, train=split.seen, valid=nothing)
    if len(split.valid):
        return split
    latest = config.train.validation_cut == "latest"
    return hold_out_validation(split, config.train.validation, seed=config.seed, latest=latest)


def train_run(run: Run, progress: Progress | None = None) -> Metrics:
    """Train from where the run is to its end, test once, and write everything down."""
    with run.writing():
        return _train(run, progress)


def _train(run: Run, progress: Progress | None) -> Metrics:
    if run.finished:
        raise CheckpointError(f"{run.path}: already finished; nothing to resume")
    model = run.build()
    state = run.load_state()
    records = run.history()[: state.epoch if state else 0]

    def after_epoch(state: TrainState, record: EpochRecord) -> None:
        records.append(record)
        # In this order: a resumed run takes the records up to its state.
        run.save_history(records)
        run.save_state(state)

    fit(
        model,
        run.config.train,
        run.config.loss,
        seed=run.config.seed,
        held_out=held_out_of(run.config, run.dataset.split),
        init=initial_weights(run.config, run.dataset) if state is None else None,
        state=state,
        progress=progress,
        after_epoch=after_epoch,
    )
    metrics = test(run, model)
    draw_curves(records, run.path / "curves.png")
    run.finish(model, metrics)
    return metrics


def held_out_of(config: RunConfig, split: Split) -> Interactions | None:
    """What the epoch is chosen by: validation, nothing, or (as often published) the test set."""
    choices = {"validation": split.valid, "fixed": None, "best-test-epoch": split.test}
    return choices[config.train.protocol]


def test(
    run: Run,
    model: Model,
    ks: Sequence[int] = TEST_KS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Metrics:
    """Test metrics of a run's model; what it saw in train or validation is no candidate."""
    split = run.dataset.split
    return evaluate(model.scorer(), split.test, split.seen, ks, progress=progress)
