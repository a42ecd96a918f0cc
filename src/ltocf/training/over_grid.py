"""A whole training over a grid of processes: each has the rows of some nodes, some of the columns,
and the pairs that touch its nodes. No process needs all pairs or a whole table of embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.batches.own_pairs import OwnPairs, Triples
from ltocf.config import Loss, SLatK, TrainConfig
from ltocf.distributed import Columns
from ltocf.errors import ConfigError
from ltocf.filters.chebyshev import chebyshev_filter
from ltocf.graph.grid import GridGraph
from ltocf.models.batch_loss import batch_loss
from ltocf.models.filter import FilterModel
from ltocf.models.losses import score_loss
from ltocf.models.pair_scores import squared_norms
from ltocf.training.trainer import not_finite


class GridTraining:
    """Trains what `Trainer` trains, from the same start and with the same draws, to the same
    weights but for the order of sums.

    `weight` are this process's rows and columns of the initial embeddings (`graph.own_rows`), and
    its parameter. `response` is a model on any graph, whose response is used and, with its times,
    trained; the same at every process. `pairs` are those whose users are among the own nodes, with
    users numbered as own rows: `OwnPairs(users // row_groups, ...)`.
    """

    def __init__(
        self,
        graph: GridGraph,
        pairs: OwnPairs,
        weight: Tensor,
        response: FilterModel,
        loss: Loss,
        config: TrainConfig,
        *,
        negatives: int,
        l2: float,
        seed: int,
        epochs: int,
    ) -> None:
        _check(response, loss, config)
        self.graph, self.pairs, self.response, self.loss = graph, pairs, response, loss
        self.negatives, self.l2, self.seed, self.epochs = negatives, l2, seed, epochs
        self.batch_size = config.batch_size_for(pairs.n_pairs)
        self.config = config
        self.weight = nn.Parameter(weight)
        self.columns = Columns(group=graph.beside)
        self.columns.is_split = graph.column_groups > 1
        self.items = _ItemRows(graph)
        self.groups = response.parameter_groups(config)
        others = [p for p in self.groups["weights"].parameters if p is not response.weight]
        self.groups["weights"] = self.groups["weights"]._replace(
            parameters=[self.weight, *others], learning_rate=response.learning_rate(config)
        )
        self.optimizers = {
            name: torch.optim.Adam(group.parameters, lr=group.learning_rate, fused=True)
            for name, group in self.groups.items()
        }

    def run_epoch(self, epoch: int) -> float:
        """One epoch, from 1; the mean loss of its batches, at every process."""
        batches = self.pairs.epoch(
            batch_size=self.batch_size, negatives=self.negatives, seed=self.seed, epoch=epoch
        )
        total, n = 0.0, -(-self.pairs.n_pairs // self.batch_size)
        for done, (rows, chunks) in enumerate(batches):
            self._schedule((epoch - 1 + done / n) / self.epochs)
            loss = self.step(rows, chunks, (epoch - 1) * n + done)
            if not math.isfinite(loss):  # the same at every process: all of them end
                raise not_finite(loss, epoch, self.groups["weights"].learning_rate)
            total += loss
        return total / max(n, 1)

    def step(self, rows: int, chunks: Iterator[Triples], step: int) -> float:
        """One step on a batch of `rows` pairs, of which the chunks are those here; its loss."""
        active = [name for name, group in self.groups.items() if group.active(step)]
        for name, group in self.groups.items():
            for parameter in group.parameters:
                parameter.requires_grad_(name in active)
        final = chebyshev_filter(self.graph, self.weight, self.response.coefficients())
        table = self.items.beside_users(final)
        mean, counts = batch_loss(
            table,
            ChunkedBatch(rows, map(self._as_batch, chunks)),
            self.items.n_users,
            self.loss,
            lambda near, far, thresholds: score_loss(near[:, 0], far, self.loss, thresholds),
            self.columns,
        )
        own_counts = self.items.at_owners(counts[:, None])[:, 0]
        norms = self.l2 / (2 * rows) * squared_norms(self.weight, own_counts)
        (mean + norms).backward()  # type: ignore[no-untyped-call]
        for name in active:
            self.optimizers[name].step()
            self.optimizers[name].zero_grad()
        self.response.after_step_()
        # All who share rows have the same part of the mean, and everybody a part of the norms.
        parts = mean.detach() / self.graph.column_groups + norms.detach()
        dist.all_reduce(parts)
        return float(parts)

    def bytes_sent(self, rows: int, degree: int, itemsize: int = 4) -> int:
        """What this process sends in a step of which `rows` pairs are here, by a ring: its rows
        before each product, forward and backward; the items' final rows, their gradients and
        counts; and the scores. Forty numbers more are not counted."""
        columns, others = self.weight.shape[1], self.graph.row_groups - 1
        propagation = 2 * self.graph.bytes_sent(columns, degree, itemsize)
        items = others * self.items.share * (2 * columns + 1) * itemsize
        c = self.graph.column_groups
        return propagation + items + 2 * (c - 1) * rows * (1 + self.negatives) * itemsize // c

    def _as_batch(self, triples: Triples) -> Batch:
        users, positives, negatives = triples
        places = (self.items.places(items) for items in (positives, negatives))
        return Batch(torch.from_numpy(users), *map(torch.from_numpy, places))

    def _schedule(self, fraction: float) -> None:
        factor = self.config.schedule_at(fraction)
        for name, optimizer in self.optimizers.items():
            for settings in optimizer.param_groups:
                settings["lr"] = self.groups[name].learning_rate * factor


def _check(response: FilterModel, loss: Loss, config: TrainConfig) -> None:
    options = response.config
    if loss.sampling == "shared":
        raise ConfigError("sampling = 'shared' cannot be trained over a grid; use 'uniform'")
    if isinstance(loss, SLatK):
        raise ConfigError("loss = 'slatk' cannot be trained over a grid; use 'softmax'")
    if options.normalise or options.recency or options.tag_weight or response.lesson_epochs:
        raise ConfigError(
            "over a grid only products of the final embeddings are trained, with times that learn "
            "on training pairs or not at all: leave out normalise, recency and tag_weight, and set "
            "learn_times to false or 'training'"
        )
    if config.draw_by != "pairs" or config.average_decay:
        raise ConfigError("over a grid pairs are drawn by 'pairs', and weights are not averaged")


class _ItemRows:
    """The rows of all items from those of each group, and sums of such tables back to the groups.
    A group's items come after its users among its rows, and their numbers differ by one at most."""

    def __init__(self, graph: GridGraph) -> None:
        self.graph = graph
        groups = range(graph.row_groups)
        self.users = np.array([len(range(g, graph.n_users, graph.row_groups)) for g in groups])
        nodes = np.array([len(range(g, graph.n_nodes, graph.row_groups)) for g in groups])
        self.share = int((nodes - self.users).max())
        self.n_users, self.n_own = int(self.users[graph.own]), int(nodes[graph.own])

    def places(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where these items are in a table of all of them, the groups one after the other."""
        rows, groups = np.divmod(items + self.graph.n_users, self.graph.row_groups)
        found: NDArray[np.int64] = groups * self.share + rows - self.users[groups]
        return found

    def beside_users(self, rows: Tensor) -> Tensor:
        """The own users' rows, and after them those of all items; differentiable."""
        table: Tensor = _BesideUsers.apply(rows, self)  # type: ignore[no-untyped-call]
        return table

    def gathered(self, rows: Tensor) -> Tensor:
        own = rows.new_zeros(self.share, rows.shape[1])
        own[: self.n_own - self.n_users] = rows[self.n_users : self.n_own]
        table = rows.new_empty(self.n_users + self.graph.row_groups * self.share, rows.shape[1])
        table[: self.n_users] = rows[: self.n_users]
        dist.all_gather_into_tensor(table[self.n_users :], own, group=self.graph.peers)
        return table

    def at_owners(self, table: Tensor) -> Tensor:
        """The own rows of the sum of such tables over the groups. (graph.share, any)"""
        parts = table[self.n_users :].contiguous()
        received = torch.empty_like(parts)
        dist.all_to_all_single(received, parts, group=self.graph.peers)
        rows = table.new_zeros(self.graph.share, table.shape[1])
        rows[: self.n_users] = table[: self.n_users]
        summed = received.view(self.graph.row_groups, self.share, -1).sum(0)
        rows[self.n_users : self.n_own] = summed[: self.n_own - self.n_users]
        return rows


class _BesideUsers(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, items: _ItemRows) -> Tensor:
        ctx.items = items
        return items.gathered(rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.items.at_owners(gradient), None
