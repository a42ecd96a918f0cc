"""The steps of a training: an optimiser per parameter group, averaged weights, and the state that a
resumed training continues from."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from ltocf.batches.ahead import ChunkedBatch
from ltocf.config import Loss, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.models.base import Model
from ltocf.models.thresholds import Thresholds
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate, testable_users
from ltocf.scorers.complete import complete_for
from ltocf.training.records import SELECT_BY, TrainState

VALIDATED_USERS = 10_000  # at most, to validate quickly while training; the test ranks all users


class Trainer:
    """One optimiser per parameter group; only the groups that are active in a step take it."""

    def __init__(
        self,
        model: Model,
        config: TrainConfig,
        loss: Loss,
        seed: int,
        epochs: int,
        lesson: Interactions | None = None,
    ) -> None:
        self.epochs = epochs  # that the schedule of the learning rates spans
        self.lesson = lesson  # held-out pairs that some parameters learn on, if they are to
        self.model, self.config, self.loss, self.seed = model, config, loss, seed
        self.thresholds = Thresholds(loss, seed)
        self.batch_size = config.batch_size_for(len(model.graph.interactions))
        self.groups = model.parameter_groups(config)
        self.optimizers = {
            name: torch.optim.Adam(group.parameters, lr=group.learning_rate, fused=True)
            for name, group in self.groups.items()
        }
        self.average: dict[str, Tensor] = {}
        if config.average_decay:
            self.average = {name: p.detach().clone() for name, p in model.named_parameters()}

    def run_epoch(self, epoch: int, progress: Progress) -> float:
        batches = self.model.batches(
            self.loss,
            batch_size=self.batch_size,
            draw_by=self.config.draw_by,
            seed=self.seed,
            epoch=epoch,
        )
        self.thresholds.refresh_(self.model, epoch, lambda: progress("training", epoch - 1))
        self.model.train()
        total, n = 0.0, len(batches)
        for done, batch in enumerate(batches):
            fraction = (epoch - 1 + done / n) / self.epochs
            self._schedule(fraction)
            # A seed of its own for every step, so that a resumed run draws the same dropout as one
            # that was never interrupted.
            drawn = np.random.SeedSequence([self.seed, epoch, done]).generate_state(1, np.uint64)
            self.model.before_step_(fraction, int(drawn[0]))
            step = (epoch - 1) * n + done
            loss = self.step(self.thresholds.beside(batch), step)
            if self.lesson is not None and epoch <= self.model.lesson_epochs:
                self.learn_on_held_out(self.lesson, epoch, step)
            # Adam would carry a NaN into every weight, so there is nothing to continue from.
            if not math.isfinite(loss):
                raise not_finite(loss, epoch, self.model.learning_rate(self.config))
            total += loss
            if done + 1 < n:  # the last step is reported with the metrics of the epoch
                note = f"loss {total / (done + 1):.4f}"
                progress("training", epoch - 1 + (done + 1) / n, self.epochs, note)
        return total / max(n, 1)

    def _schedule(self, fraction: float) -> None:
        factor = self.config.schedule_at(fraction)
        for name, optimizer in self.optimizers.items():
            for settings in optimizer.param_groups:
                settings["lr"] = self.groups[name].learning_rate * factor

    def step(self, batch: ChunkedBatch, step: int) -> float:
        """Take one step on a batch of training pairs; return the mean loss."""
        active = self._active(step, on_held_out=False)
        # Inactive parameters need no gradient, which saves the work of computing it.
        for name, group in self.groups.items():
            _require_grad(group.parameters, name in active)
        loss = self.model.add_gradients_(batch, self.loss)
        for name in active:
            self.optimizers[name].step()
            self.optimizers[name].zero_grad()
        self.model.after_step_()
        parameters = dict(self.model.named_parameters()) if self.average else {}
        for name, average in self.average.items():
            average.lerp_(parameters[name].detach(), 1 - self.config.average_decay)
        return loss

    def learn_on_held_out(self, pairs: Interactions, epoch: int, step: int) -> None:
        """One step on held-out pairs by the parameters that learn on those, if it is their turn."""
        active = self._active(step, on_held_out=True)
        if not active:
            return
        for name, group in self.groups.items():
            _require_grad(group.parameters, name in active)
        # Seeded by the step as well, so that a resumed run draws the same pairs.
        random = np.random.default_rng([self.seed, step])
        self.model.held_out_loss(pairs, random).backward()  # type: ignore[no-untyped-call]
        for name in active:
            for settings in self.optimizers[name].param_groups:
                falling = 1 - (epoch - 1) / self.model.lesson_epochs
                settings["lr"] = self.groups[name].learning_rate * falling
            self.optimizers[name].step()
            self.optimizers[name].zero_grad()

    def _active(self, step: int, *, on_held_out: bool) -> list[str]:
        return [
            name
            for name, group in self.groups.items()
            if group.on_held_out == on_held_out and group.active(step)
        ]

    def kept_weights(self) -> dict[str, Tensor]:
        return self.model.state_dict() | self.average

    def validate(self, held_out: Interactions, progress: Progress = silent) -> tuple[Metrics, int]:
        """The metrics, and how many users they are of; 0 if of all users with held-out items."""
        self.model.eval()
        users = testable_users(held_out, VALIDATED_USERS, self.seed)
        last: dict[str, Tensor] = {}
        if self.average:  # validate the averaged weights, since they are what is kept
            last = {name: value.clone() for name, value in self.model.state_dict().items()}
            self.model.load_state_dict(self.kept_weights())
        seen = self.model.graph.interactions
        scorer = complete_for(held_out, self.model.scorer(), seen)
        metrics = evaluate(scorer, held_out, seen, users=users, progress=progress)
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
        state.tensors = tensors | self.thresholds.state()
        return state

    def restore(self, state: TrainState) -> None:
        self.model.load_state_dict(under("model.", state.tensors))
        self.thresholds.restore(state.tensors)
        current = self.model.state_dict()
        average = under("average.", state.tensors)
        self.average = {name: value.to(current[name]) for name, value in average.items()}
        for name, optimizer in self.optimizers.items():
            packed = optimizer.state_dict()
            for key, value in under(f"adam.{name}.", state.tensors).items():
                index, _, field_name = key.partition(".")
                packed["state"].setdefault(int(index), {})[field_name] = value
            optimizer.load_state_dict(packed)

    def finish(self, state: TrainState) -> None:
        """Leave the model with the weights to keep."""
        # Without validation there is no best epoch, and the last weights are kept.
        best = under("best.", state.tensors)
        self.model.load_state_dict(best or self.kept_weights())
        self.model.cpu().eval()  # scorers are NumPy arrays, which live on the CPU
        for group in self.groups.values():
            _require_grad(group.parameters, True)


def not_finite(loss: float, epoch: int, learning_rate: float) -> ConfigError:
    return ConfigError(
        f"the loss became {loss} in epoch {epoch}; lower learning_rate (now {learning_rate})"
    )


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the tensors whose names start with `prefix`, without it."""
    return {
        name.removeprefix(prefix): value.clone()
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _require_grad(parameters: list[nn.Parameter], needed: bool) -> None:
    for parameter in parameters:
        parameter.requires_grad_(needed)
