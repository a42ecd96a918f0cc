"""fit(): epochs, alternating updates of embeddings and times, early stopping, exact resume."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ltocf.config import LossConfig, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.models.base import Model
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.threads import threads_for

SELECT_BY = "recall@20"


@dataclass(frozen=True)
class EpochRecord:
    """One line of history.jsonl."""

    epoch: int
    loss: float
    seconds: float
    times: list[float] = field(default_factory=list)
    metrics: Metrics = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass
class TrainState:
    """Everything that the next epoch depends on, as of the end of `epoch`."""

    epoch: int = 0
    best_epoch: int = 0
    best_metric: float = -math.inf
    stale: int = 0  # evaluations since the best
    tensors: dict[str, Tensor] = field(default_factory=dict)


AfterEpoch = Callable[[TrainState, EpochRecord], None]


class Progress(Protocol):
    """What fit() tells whoever watches."""

    def step(self, epoch: int, done: int, total: int, loss: float) -> None: ...
    def epoch(self, record: EpochRecord, best_epoch: int) -> None: ...


class Silent:
    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        pass

    def epoch(self, record: EpochRecord, best_epoch: int) -> None:
        pass


def fit(
    model: Model,
    config: TrainConfig,
    loss: LossConfig,
    *,
    seed: int,
    held_out: Interactions | None = None,
    init: Mapping[str, Tensor] | None = None,
    state: TrainState | None = None,
    progress: Progress | None = None,
    after_epoch: AfterEpoch = lambda state, record: None,
) -> list[EpochRecord]:
    """Train in place and leave the model with its best weights on `held_out`, or with its last
    where there is none. With `init`, the weights of another model, start from its vectors. With
    `state`, as `after_epoch` was given it, continue exactly from there.
    """
    if not list(model.parameters()):  # a closed form: nothing to iterate
        model.initialise_(seed)
        return []
    numbers = sum(parameter.numel() for parameter in model.parameters())
    with threads_for(numbers):
        return _fit(
            model, config, loss, seed, held_out, init, state, progress or Silent(), after_epoch
        )


def _fit(
    model: Model,
    config: TrainConfig,
    loss: LossConfig,
    seed: int,
    held_out: Interactions | None,
    init: Mapping[str, Tensor] | None,
    state: TrainState | None,
    progress: Progress,
    after_epoch: AfterEpoch,
) -> list[EpochRecord]:
    if state is None:
        model.initialise_(seed)
        if init is not None:
            model.start_from_(init)
    trainer = _Trainer(model.to(training_device(model, config.device)), config, loss, seed)
    if state is None:
        state = TrainState()
        trainer.start_average()
    else:
        trainer.restore(state)
    records: list[EpochRecord] = []
    while state.epoch < config.epochs and state.stale < config.patience:
        epoch = state.epoch + 1
        started = time.perf_counter()
        mean_loss = trainer.run_epoch(epoch, progress)
        metrics: Metrics = {}
        if held_out is not None and (epoch % config.evaluate_every == 0 or epoch == config.epochs):
            metrics = trainer.validate(held_out)
            _note(state, epoch, metrics, trainer)
        state.epoch = epoch
        seconds = time.perf_counter() - started
        record = EpochRecord(epoch, mean_loss, seconds, model.extracted_times(), metrics)
        records.append(record)
        progress.epoch(record, state.best_epoch)
        after_epoch(trainer.capture(state), record)
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


def _note(state: TrainState, epoch: int, metrics: Metrics, trainer: _Trainer) -> None:
    if metrics[SELECT_BY] > state.best_metric:
        state.best_metric, state.best_epoch, state.stale = metrics[SELECT_BY], epoch, 0
        best = {f"best.{name}": value.clone() for name, value in trainer.kept_weights().items()}
        state.tensors = state.tensors | best
    else:
        state.stale += 1


class _Trainer:
    def __init__(self, model: Model, config: TrainConfig, loss: LossConfig, seed: int) -> None:
        self.model, self.config, self.loss, self.seed = model, config, loss, seed
        self.batch_size = config.batch_size_for(len(model.graph.interactions))
        self.times = model.time_parameters()
        ids = {id(p) for p in self.times}
        self.others = [p for p in model.parameters() if p.requires_grad and id(p) not in ids]
        self.optimizers = {"adam": _adam(self.others, config.learning_rate)}
        if self.times and config.time_learning_rate > 0:
            self.optimizers["time_adam"] = _adam(self.times, config.time_learning_rate)
        self.average: dict[str, Tensor] = {}

    def run_epoch(self, epoch: int, progress: Progress) -> float:
        batches = self.model.batches(
            self.loss,
            batch_size=self.batch_size,
            scheme=self.config.scheme,
            seed=self.seed,
            epoch=epoch,
        )
        self.model.train()
        total, n = 0.0, len(batches)
        for done, batch in enumerate(batches):
            fraction = (epoch - 1 + done / n) / self.config.epochs
            self._schedule(fraction)
            drawn = np.random.SeedSequence([self.seed, epoch, done]).generate_state(1, np.uint64)
            self.model.before_step_(fraction, int(drawn[0]))
            loss = self._step(batch, (epoch - 1) * n + done)
            if not math.isfinite(loss):
                raise ConfigError(
                    f"the loss became {loss} in epoch {epoch}; lower learning_rate "
                    f"(now {self.config.learning_rate})"
                )
            total += loss
            progress.step(epoch, done + 1, n, total / (done + 1))
        return total / max(n, 1)

    def _schedule(self, fraction: float) -> None:
        factor = 0.5 * (1 + math.cos(math.pi * fraction)) if self.config.schedule == "cosine" else 1
        for group in self.optimizers["adam"].param_groups:
            group["lr"] = self.config.learning_rate * factor
        if "time_adam" in self.optimizers:
            for group in self.optimizers["time_adam"].param_groups:
                group["lr"] = self.config.time_learning_rate * factor

    def _step(self, batch: Any, step: int) -> float:
        learn_times = "time_adam" in self.optimizers
        joint = self.config.time_updates == "joint"
        turn_of_times = not joint and step % (self.config.time_every + 1) == self.config.time_every
        names = ["adam", *(["time_adam"] if joint and learn_times else [])]
        if learn_times and turn_of_times:
            names = ["time_adam"]
        # The parameters that rest need no gradient, which saves the work of computing it.
        _require_grad(self.others, "adam" in names)
        _require_grad(self.times, "time_adam" in names)
        loss = self.model.loss(batch, self.loss)
        loss.backward()  # type: ignore[no-untyped-call]
        for name in names:
            self.optimizers[name].step()
            self.optimizers[name].zero_grad()
        self.model.after_step_()
        if self.average:
            self._update_average()
        return float(loss.detach())

    def start_average(self) -> None:
        if self.config.average:
            self.average = {name: v.clone() for name, v in self.model.state_dict().items()}

    def _update_average(self) -> None:
        for name, value in self.model.state_dict().items():
            self.average[name].lerp_(value, 1 - self.config.average)

    def kept_weights(self) -> dict[str, Tensor]:
        return self.average or self.model.state_dict()

    def validate(self, held_out: Interactions) -> Metrics:
        self.model.eval()
        last = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.model.load_state_dict(self.kept_weights())
        metrics = evaluate(self.model.scorer(), held_out, self.model.graph.interactions)
        self.model.load_state_dict(last)
        return metrics

    def capture(self, state: TrainState) -> TrainState:
        """`state` with the tensors that a later restore() needs."""
        tensors = {name: v for name, v in state.tensors.items() if name.startswith("best.")}
        tensors |= {f"model.{name}": v for name, v in self.model.state_dict().items()}
        tensors |= {f"average.{name}": v for name, v in self.average.items()}
        for name, optimizer in self.optimizers.items():
            for index, values in optimizer.state_dict()["state"].items():
                tensors |= {f"{name}.{index}.{key}": value for key, value in values.items()}
        state.tensors = tensors
        return state

    def restore(self, state: TrainState) -> None:
        self.model.load_state_dict(_under("model.", state.tensors))
        current = self.model.state_dict()
        average = _under("average.", state.tensors)
        self.average = {name: value.to(current[name]) for name, value in average.items()}
        for name, optimizer in self.optimizers.items():
            packed = optimizer.state_dict()
            for key, value in _under(f"{name}.", state.tensors).items():
                index, _, field_name = key.partition(".")
                packed["state"].setdefault(int(index), {})[field_name] = value
            optimizer.load_state_dict(packed)

    def finish(self, state: TrainState) -> None:
        """Leave the model with the weights to keep."""
        best = _under("best.", state.tensors)
        self.model.load_state_dict(best or self.kept_weights())
        self.model.cpu().eval()  # questions are answered from there
        _require_grad(self.others + self.times, True)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the tensors whose names start with `prefix`, without it."""
    return {
        name.removeprefix(prefix): value.clone()
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _adam(parameters: list[nn.Parameter], learning_rate: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=learning_rate, fused=True)


def _require_grad(parameters: list[nn.Parameter], needed: bool) -> None:
    for parameter in parameters:
        parameter.requires_grad_(needed)
