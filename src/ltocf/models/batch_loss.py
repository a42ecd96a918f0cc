"""The loss of a batch of any size on one table, with its gradient collected on that table.

The table is a propagation of the whole graph, so one must serve as many pairs as there are. They
come in chunks that fit the cache; each adds to the gradient of the table, which goes back through
the graph once. Memory beyond the table and its gradient is that of two chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.config import SHARED, Loss
from ltocf.distributed import Columns
from ltocf.models.pair_scores import add_products_, dot_products, write_scores_

# Of positives (n, orders), negatives (n, any) and the users' thresholds (n,), if there are some.
ScoreLoss = Callable[[Tensor, Tensor, Tensor | None], Tensor]
Scored = TypeVar("Scored")


class BatchLoss(NamedTuple):
    mean: Tensor  # differentiable by the table
    counts: Tensor  # how often each row of the table was scored, of several negatives their mean


def batch_loss(
    table: Tensor,
    batch: ChunkedBatch,
    n_users: int,
    loss: Loss,
    of_scores: ScoreLoss,
    columns: Columns,
    empty_like: Callable[[Tensor], Tensor] = torch.empty_like,
) -> BatchLoss:
    """The mean of `of_scores` over the batch. Items' rows in the table come after users'; the table
    may have one process's `columns` alone. `empty_like` makes room for the gradient."""
    rows = table.detach()
    gradient = empty_like(rows).zero_() if table.requires_grad else None
    counts = torch.zeros(len(rows), dtype=rows.dtype, device=rows.device)
    mean = torch.zeros((), dtype=torch.float64, device=rows.device)
    chunks = ((chunk, _scored(chunk, rows, n_users, loss, columns)) for chunk in batch.chunks)
    for chunk, scores in _one_ahead(chunks):
        scores.arrive_()
        thresholds = None if chunk.thresholds is None else chunk.thresholds.to(rows)
        leaves = scores.near.requires_grad_(), scores.far.requires_grad_()
        with torch.enable_grad():
            value = of_scores(*leaves, thresholds) * (len(scores.users) / batch.rows)
        if gradient is not None:
            by_near, by_far = torch.autograd.grad(value, leaves)
            scores.add_gradient_(by_near, by_far, gradient)
        mean += value.detach()
        _count_(counts, scores)
    collected: Tensor = _Collected.apply(table, mean.to(table), gradient)  # type: ignore[no-untyped-call]
    return BatchLoss(collected, counts)


def _scored(
    chunk: Batch, rows: Tensor, n_users: int, loss: Loss, columns: Columns
) -> _Own | _Shared:
    users = chunk.users.to(rows.device)
    positives, negatives = (
        items.reshape(len(users), -1).to(rows.device)
        for items in (chunk.positives, chunk.negatives)
    )
    near = positives + n_users
    if loss.sampling == "shared":
        shared = negatives.flatten()[: loss.negatives or SHARED] + n_users
        return _Shared(rows, users, near, shared, columns)
    hardest = loss.sampling == "hardest"
    return _Own(rows, users, near, negatives, n_users, columns, hardest=hardest)


def _one_ahead(chunks: Iterator[Scored]) -> Iterator[Scored]:
    """Each chunk when the next has been scored: sums over processes arrive in the meantime."""
    for chunk, _ in pairwise(chain(chunks, [None])):
        assert chunk is not None
        yield chunk


def _count_(counts: Tensor, scores: _Own | _Shared) -> None:
    first = scores.near_rows[:, 0]
    for rows in (scores.users, first):
        counts.index_add_(0, rows, counts.new_ones(()).expand(len(rows)))
    far = scores.far_rows.flatten()
    counts.index_add_(0, far, counts.new_full((), len(first) / max(len(far), 1)).expand(len(far)))


class _Own:
    """Scores against negatives that each pair has to itself, or the one of them scored highest."""

    def __init__(
        self,
        table: Tensor,
        users: Tensor,
        near: Tensor,
        negatives: Tensor,
        n_users: int,
        columns: Columns,
        *,
        hardest: bool,
    ) -> None:
        self.table, self.users, self.hardest = table, users, hardest
        self.near_rows, self.negatives, self.n_users = near, negatives, n_users
        n, orders = near.shape
        scores = table.new_empty((n, orders + negatives.shape[1]))
        write_scores_(table, users, near, 0, scores, 0)
        write_scores_(table, users, negatives, n_users, scores, orders)
        self.scores = columns.total_soon(scores)

    def arrive_(self) -> None:
        scores, orders = self.scores(), self.near_rows.shape[1]
        self.near, self.far = scores[:, :orders].clone(), scores[:, orders:]
        items = self.negatives
        if self.hardest:
            best = self.far.argmax(1, keepdim=True)
            self.far, items = self.far.gather(1, best), items.gather(1, best)
        self.far_rows = items + self.n_users

    def add_gradient_(self, by_near: Tensor, by_far: Tensor, gradient: Tensor) -> None:
        rows = torch.cat([self.near_rows, self.far_rows], 1)
        add_products_(self.table, self.users, rows, torch.cat([by_near, by_far], 1), gradient)


class _Shared:
    """Scores against negatives that all pairs share: one product scores them all."""

    def __init__(
        self, table: Tensor, users: Tensor, near: Tensor, far: Tensor, columns: Columns
    ) -> None:
        self.table, self.users, self.near_rows, self.far_rows = table, users, near, far
        self.user_vectors, self.far_vectors = table[users], table[far]
        self.near_scores = columns.total_soon(dot_products(table, users, near))
        self.far_scores = columns.total_soon(self.user_vectors @ self.far_vectors.T)

    def arrive_(self) -> None:
        self.near, self.far = self.near_scores(), self.far_scores()

    def add_gradient_(self, by_near: Tensor, by_far: Tensor, gradient: Tensor) -> None:
        add_products_(self.table, self.users, self.near_rows, by_near, gradient)
        gradient.index_add_(0, self.users, by_far @ self.far_vectors)
        gradient.index_add_(0, self.far_rows, by_far.T @ self.user_vectors)


class _Collected(torch.autograd.Function):
    """The loss, whose gradient by the table is known."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, loss: Tensor, gradient: Tensor | None) -> Tensor:
        ctx.gradient = gradient
        return loss.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        gradient, ctx.gradient = ctx.gradient, None  # it is as large as the table: used once
        return gradient.mul_(upstream), None, None
