"""Train the parameters of a model: epochs, early stopping, exact resume, and restarts from scratch
after times were learned."""

from __future__ import annotations

import time
from functools import partial
from typing import Literal, NamedTuple

import torch

from ltocf.config import Loss, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.distributed import device
from ltocf.errors import ConfigError
from ltocf.machine.threads import threads_for
from ltocf.models.base import Model
from ltocf.models.losses import warn_of_collapse
from ltocf.progress import OutOfTime, Progress, silent
from ltocf.ranking.metrics import Metrics
from ltocf.training.columns import own_columns, split_over_processes, whole_columns
from ltocf.training.records import (
    SELECT_BY,
    AfterEpoch,
    EpochRecord,
    Stage,
    TrainState,
    with_record,
)
from ltocf.training.trainer import Trainer, under


class Training(NamedTuple):
    """How a training went."""

    records: list[EpochRecord]  # of the epochs of this call
    best_epoch: int  # whose parameters the model now has
    complete: bool  # False if it ran out of time


def train(
    model: Model,
    config: TrainConfig,
    loss: Loss,
    *,
    seed: int,
    held_out: Interactions | None = None,
    lesson: Interactions | None = None,
    state: TrainState | None = None,
    last_epoch: int | None = None,
    stage: Stage = "choosing",
    shown_as: str = "training",
    progress: Progress = silent,
    after_epoch: AfterEpoch = lambda state, record: None,
) -> Training:
    """Train in place, starting from the parameters that the model has. It ends with those of its
    best epoch on `held_out`, or of the last epoch if nothing is held out.

    On the pairs of `lesson`, which are held out too, some models learn things such as times in
    their first epochs; training then restarts from scratch with those. `state`, as `after_epoch`
    received it, continues exactly from there. `last_epoch` stops after that epoch, as if
    interrupted. If `progress` raises OutOfTime, training ends with the best epoch so far.
    """
    if loss.name not in model.losses and model.losses:
        raise ConfigError(
            f"{type(model).__name__} cannot be trained with loss = {loss.name!r}; choose one of: "
            f"{', '.join(model.losses)}"
        )
    epochs = config.epochs_for(model.graph.interactions.pairs_per_user)
    last = epochs if last_epoch is None else last_epoch

    def watch(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        progress(shown_as, done, last, note)

    records = list[EpochRecord]()

    def keep(state: TrainState, record: EpochRecord) -> None:
        nonlocal records
        records = with_record(records, record)
        after_epoch(state, record)

    if state is not None and not state.epoch:  # interrupted just before a restart from scratch
        model.load_state_dict(under("model.", state.tensors))
        model.draw_(seed)
        state = None
    numbers = sum(parameter.numel() for parameter in model.parameters())
    with threads_for(numbers):
        while True:
            with split_over_processes(model):
                model.to(device(training_device(model, config.device)))
                trainer = Trainer(model, config, loss, seed, epochs, lesson)
                if state is None:
                    state = TrainState(stage=stage, epochs=epochs)
                else:
                    state = own_columns(state)
                    trainer.restore(state)
                ending = _epochs(trainer, state, last, held_out, watch, keep)
            if ending != "anew":
                best = state.best_epoch if held_out is not None else state.epoch
                return Training(records, best, ending == "complete")
            model.draw_(seed)
            state = None


def _epochs(
    trainer: Trainer,
    state: TrainState,
    last_epoch: int,
    held_out: Interactions | None,
    progress: Progress,
    keep: AfterEpoch,
) -> Literal["complete", "out of time", "anew"]:
    config, model = trainer.config, trainer.model
    ending: Literal["complete", "out of time"] = "complete"
    try:
        while state.epoch < last_epoch and state.stale < config.patience:
            epoch = state.epoch + 1
            started = time.perf_counter()
            mean_loss = trainer.run_epoch(epoch, progress)
            if epoch == 1 and model.losses:
                warn_of_collapse(mean_loss, trainer.loss)
            metrics: Metrics = {}
            sampled = 0
            if held_out is not None and (epoch % config.evaluate_every == 0 or epoch == last_epoch):
                metrics, sampled = trainer.validate(held_out, partial(_ranking, progress, epoch))
                trainer.note(state, epoch, metrics)
            state.epoch = epoch
            seconds = time.perf_counter() - started
            record = EpochRecord(
                epoch, mean_loss, seconds, model.extracted_times(), metrics, sampled
            )
            merit = metrics.get(SELECT_BY, 0.0)
            anew = trainer.lesson is not None and model.starts_again_(epoch, merit)
            if anew:
                state = TrainState(stage=state.stage, epochs=state.epochs)
            keep(whole_columns(trainer.capture(state)), record)
            progress("training", epoch, last_epoch, str(record))
            if anew:
                model.cpu()
                return "anew"
    except OutOfTime:
        ending = "out of time"
    trainer.finish(state)
    return ending


def _ranking(
    progress: Progress,
    epoch: int,
    stage: str,
    done: float,
    total: float | None = None,
    note: str = "",
) -> None:
    """The progress callback of validation, which counts as a part of its epoch."""
    progress("training", epoch)


def training_device(model: Model, wanted: str) -> str:
    """The device to train on: the one asked for, or a GPU if there is one and the model can use
    it."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = 'cuda', but torch sees no GPU here; use device=cpu")
    if wanted == "cuda" and not model.trains_on_gpu:
        raise ConfigError(f"{type(model).__name__} trains on the CPU only; leave out device=cuda")
    on_gpu = wanted != "cpu" and torch.cuda.is_available() and model.trains_on_gpu
    return "cuda" if on_gpu else "cpu"
