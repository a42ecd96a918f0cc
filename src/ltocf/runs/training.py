"""Train the parameters of a model: epochs, parameter groups, early stopping, exact resume."""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from torch import Tensor, nn

from ltocf.batches.ahead import Parts
from ltocf.config import Loss, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.distributed import device
from ltocf.errors import ConfigError
from ltocf.models.base import Model
from ltocf.models.losses import warn_of_collapse
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate, testable_users
from ltocf.runs.columns import own_columns, split_over_processes, whole_columns
from ltocf.runs.records import SELECT_BY, AfterEpoch, EpochRecord, TrainState
from ltocf.threads import threads_for

VALIDATED_USERS = 10_000  # at most, while training; the test ranks all


def train(
    model: Model,
    config: TrainConfig,
    loss: Loss,
    *,
    seed: int,
    held_out: Interactions | None = None,
    state: TrainState | None = None,
    last_epoch: int | None = None,
    stage: str = "training",
    progress: Progress = silent,
    after_epoch: AfterEpoch = lambda state, record: None,
) -> list[EpochRecord]:
    """Train in place, from the parameters that the model has, and leave it with its best on
    `held_out`, or with its last where there is none. With `state`, as `after_epoch` was given it,
    continue exactly from there. With `last_epoch`, stop after it, as if interrupted.
    """
    if loss.name not in model.losses and model.losses:
        raise ConfigError(
            f"{type(model).__name__} cannot be trained with loss = {loss.name!r}; choose one of: "
            f"{', '.join(model.losses)}"
        )
    pairs = model.graph.interactions
    epochs = config.epochs_for(pairs.pairs_per_user)
    if last_epoch is None:
        last_epoch = epochs

    shown, last = stage, last_epoch

    def watch(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        progress(shown, done, last, note)

    numbers = sum(parameter.numel() for parameter in model.parameters())
    with threads_for(numbers), split_over_processes(model):
        model.to(device(training_device(model, config.device)))
        trainer = Trainer(model, config, loss, seed, epochs)
        if state is None:
            state = TrainState()
        else:
            state = own_columns(state)
            trainer.restore(state)
        return _epochs(trainer, state, last_epoch, held_out, watch, after_epoch)


def _epochs(
    trainer: Trainer,
    state: TrainState,
    last_epoch: int,
    held_out: Interactions | None,
    progress: Progress,
    after_epoch: AfterEpoch,
) -> list[EpochRecord]:
    config, records = trainer.config, list[EpochRecord]()
    while state.epoch < last_epoch and state.stale < config.patience:
        epoch = state.epoch + 1
        started = time.perf_counter()
        mean_loss = trainer.run_epoch(epoch, progress)
        if epoch == 1 and trainer.model.losses:
            warn_of_collapse(mean_loss, trainer.loss)
        metrics: Metrics = {}
        sampled = 0
        if held_out is not None and (epoch % config.evaluate_every == 0 or epoch == last_epoch):
            metrics, sampled = trainer.validate(held_out)
            trainer.note(state, epoch, metrics)
        state.epoch = epoch
        seconds = time.perf_counter() - started
        times = trainer.model.extracted_times()
        records.append(EpochRecord(epoch, mean_loss, seconds, times, metrics, sampled))
        progress("training", epoch, last_epoch, str(records[-1]))
        after_epoch(whole_columns(trainer.capture(state)), records[-1])
    trainer.finish(state)
    return records


def training_device(model: Model, wanted: str) -> str:
    """Where to train: as asked, or by default on a GPU if there is one and the model can use it."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = 'cuda', but torch sees no GPU here; use device=cpu")
    if wanted == "cuda" and not model.trains_on_gpu:
        raise ConfigError(f"{type(model).__name__} trains on the CPU only; leave out device=cuda")
    on_gpu = wanted != "cpu" and torch.cuda.is_available() and model.trains_on_gpu
    return "cuda" if on_gpu else "cpu"


class Trainer:
    """One optimiser a parameter group; a step is taken by the groups that are active in it."""

    def __init__(
        self, model: Model, config: TrainConfig, loss: Loss, seed: int, epochs: int
    ) -> None:
        self.epochs = epochs  # that the schedule of the learning rates spans
        self.model, self.config, self.loss, self.seed = model, config, loss, seed
        self.batch_size = config.batch_size_for(len(model.graph.interactions))
        self.groups = model.parameter_groups(config)
        self.optimizers = {
            name: torch.optim.Adam(group.parameters, lr=group.learning_rate, fused=True)
            for name, group in self.groups.items()
        }
        self.average: dict[str, Tensor] = {}
        if config.average_decay:
            self.average = {name: value.clone() for name, value in model.state_dict().items()}

    def run_epoch(self, epoch: int, progress: Progress) -> float:
        batches = self.model.batches(
            self.loss,
            batch_size=self.batch_size,
            draw_by=self.config.draw_by,
            seed=self.seed,
            epoch=epoch,
        )
        self.model.train()
        total, n = 0.0, len(batches)
        for done, batch in enumerate(batches):
            fraction = (epoch - 1 + done / n) / self.epochs
            self._schedule(fraction)
            drawn = np.random.SeedSequence([self.seed, epoch, done]).generate_state(1, np.uint64)
            self.model.before_step_(fraction, int(drawn[0]))
            loss = self.step(batch, (epoch - 1) * n + done)
            if not math.isfinite(loss):
                raise ConfigError(
                    f"the loss became {loss} in epoch {epoch}; lower learning_rate "
                    f"(now {self.model.learning_rate(self.config)})"
                )
            total += loss
            if done + 1 < n:  # the last step's is the epoch's, with its metrics
                note = f"loss {total / (done + 1):.4f}"
                progress("training", epoch - 1 + (done + 1) / n, self.epochs, note)
        return total / max(n, 1)

    def _schedule(self, fraction: float) -> None:
        factor = 0.5 * (1 + math.cos(math.pi * fraction)) if self.config.schedule == "cosine" else 1
        for name, optimizer in self.optimizers.items():
            for settings in optimizer.param_groups:
                settings["lr"] = self.groups[name].learning_rate * factor

    def step(self, batch: Parts, step: int) -> float:
        active = [name for name, group in self.groups.items() if group.active(step)]
        # The parameters that rest need no gradient, which saves the work of computing it.
        for name, group in self.groups.items():
            _require_grad(group.parameters, name in active)
        loss = self.model.add_gradients_(batch, self.loss)
        for name in active:
            self.optimizers[name].step()
            self.optimizers[name].zero_grad()
        self.model.after_step_()
        for name, average in self.average.items():
            average.lerp_(self.model.state_dict()[name], 1 - self.config.average_decay)
        return loss

    def kept_weights(self) -> dict[str, Tensor]:
        return self.average or self.model.state_dict()

    def validate(self, held_out: Interactions) -> tuple[Metrics, int]:
        """The metrics, and of how many users if there were more than need be ranked."""
        self.model.eval()
        users = testable_users(held_out, VALIDATED_USERS, self.seed)
        last: dict[str, Tensor] = {}
        if self.average:  # what would be kept is what is ranked
            last = {name: value.clone() for name, value in self.model.state_dict().items()}
            self.model.load_state_dict(self.average)
        seen = self.model.graph.interactions
        metrics = evaluate(self.model.scorer(), held_out, seen, users=users)
        if last:
            self.model.load_state_dict(last)
        everybody = np.count_nonzero(held_out.user_degrees)
        return metrics, len(users) if len(users) < everybody else 0

    def note(self, state: TrainState, epoch: int, metrics: Metrics) -> None:
        """Keep the weights if they are the best so far."""
        if metrics[SELECT_BY] > state.best_metric:
            state.best_metric, state.best_epoch, state.stale = metrics[SELECT_BY], epoch, 0
            best = {f"best.{name}": value.clone() for name, value in self.kept_weights().items()}
            state.tensors = state.tensors | best
        else:
            state.stale += 1

    def capture(self, state: TrainState) -> TrainState:
        """`state` with the tensors that a later restore() needs."""
        tensors = {name: v for name, v in state.tensors.items() if name.startswith("best.")}
        tensors |= {f"model.{name}": v for name, v in self.model.state_dict().items()}
        tensors |= {f"average.{name}": v for name, v in self.average.items()}
        for name, optimizer in self.optimizers.items():
            for index, values in optimizer.state_dict()["state"].items():
                tensors |= {f"adam.{name}.{index}.{key}": value for key, value in values.items()}
        state.tensors = tensors
        return state

    def restore(self, state: TrainState) -> None:
        self.model.load_state_dict(_under("model.", state.tensors))
        current = self.model.state_dict()
        average = _under("average.", state.tensors)
        self.average = {name: value.to(current[name]) for name, value in average.items()}
        for name, optimizer in self.optimizers.items():
            packed = optimizer.state_dict()
            for key, value in _under(f"adam.{name}.", state.tensors).items():
                index, _, field_name = key.partition(".")
                packed["state"].setdefault(int(index), {})[field_name] = value
            optimizer.load_state_dict(packed)

    def finish(self, state: TrainState) -> None:
        """Leave the model with the weights to keep."""
        best = _under("best.", state.tensors)
        self.model.load_state_dict(best or self.kept_weights())
        self.model.cpu().eval()  # questions are answered from there
        for group in self.groups.values():
            _require_grad(group.parameters, True)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the tensors whose names start with `prefix`, without it."""
    return {
        name.removeprefix(prefix): value.clone()
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _require_grad(parameters: list[nn.Parameter], needed: bool) -> None:
    for parameter in parameters:
        parameter.requires_grad_(needed)
