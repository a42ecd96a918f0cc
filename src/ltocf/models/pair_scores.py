"""Scores of pairs of rows of one table, and the gradient of the table in one pass.

torch would gather every operand, and its backward would fill a table of zeros for each of them: on
a CPU that costs as much as the propagation itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from ltocf.threads import share_out

RANGE = 1 << 16  # scores computed by one thread at a time; it takes milliseconds
COLUMNS = 16  # of the gradient added to by one thread at a time: a cache line


def pair_scores(table: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """<table[left[b]], table[right[b, j]]>, for left (batch,) and right (batch, n). (batch, n)"""
    if table.is_cuda:
        return dot_products(table, left, right)
    scores: Tensor = _PairScores.apply(table, left, right)  # type: ignore[no-untyped-call]
    return scores


def squared_norms(table: Tensor, times: Tensor) -> Tensor:
    """sum_r times[r] |table[r]|^2."""
    total: Tensor = _SquaredNorms.apply(table, times)  # type: ignore[no-untyped-call]
    return total


def half_norms(table: Tensor, users: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Half the squared norms of the batch's rows of the table, a triple; of several negatives, or
    of ones that the batch shares, their mean."""
    n = len(table)
    share = len(users) / max(negatives.numel(), 1)
    times = count_rows(n, users, positives) + count_rows(n, negatives) * share
    return squared_norms(table, times.to(table)) / (2 * len(users))


def hardest(table: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Of each row of `right` the entry scored highest with `left`. (batch, 1); no gradient."""
    with torch.no_grad():
        return right.gather(1, pair_scores(table, left, right).argmax(1, keepdim=True))


def dot_products(table: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """What `pair_scores` returns, without gradients."""
    if table.is_cuda:
        return torch.einsum("bd,bnd->bn", table[left], table[right])
    scores = table.new_empty(right.shape)
    rows, ours, theirs, out = (tensor.numpy() for tensor in (table, left, right, scores))
    chunk = max(1, RANGE // max(right.shape[1], 1))
    share_out(lambda a, b: _score(rows, ours[a:b], theirs[a:b], out[a:b]), len(ours), chunk)
    return scores


def add_products_(
    table: Tensor, left: Tensor, right: Tensor, weights: Tensor, gradient: Tensor
) -> None:
    """To the gradient of the table, add that of the sum of weights[b, j] times the pair's score.

    A thread owns columns, not pairs: no two write the same number, and every sum is in the order of
    the batch for any number of threads."""
    if table.is_cuda:
        gradient.index_add_(0, left, torch.einsum("bn,bnd->bd", weights, table[right]))
        outer = weights[:, :, None] * table[left][:, None]
        gradient.index_add_(0, right.flatten(), outer.flatten(0, 1))
        return
    rows, out, by_score = table.numpy(), gradient.numpy(), weights.contiguous().numpy()
    ours, theirs = left.numpy(), right.contiguous().numpy()

    def run(first: int, last: int) -> None:
        _scatter(rows, ours, theirs, by_score, out, first, last)

    share_out(run, table.shape[1], COLUMNS)


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, left: Tensor, right: Tensor) -> Tensor:
        ctx.save_for_backward(table, left, right)
        return dot_products(table.detach(), left, right)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, by_score: Tensor) -> tuple[Tensor, None, None]:
        table, left, right = ctx.saved_tensors
        gradient = torch.zeros_like(table)
        add_products_(table.detach(), left, right, by_score, gradient)
        return gradient, None, None


class _SquaredNorms(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, times: Tensor) -> Tensor:
        ctx.save_for_backward(table, times)
        total: Tensor = times @ torch.linalg.vector_norm(table, dim=1).square()
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        table, times = ctx.saved_tensors
        return table * (2 * upstream * times)[:, None], None


@njit(cache=True, nogil=True, fastmath=True)
def _score(table: Any, left: Any, right: Any, out: Any) -> None:
    for b in range(len(left)):
        row = table[left[b]]
        for j in range(right.shape[1]):
            other = table[right[b, j]]
            total = row[0] * other[0]
            for d in range(1, row.shape[0]):
                total += row[d] * other[d]
            out[b, j] = total


@njit(cache=True, nogil=True, fastmath=True)
def _scatter(
    table: Any, left: Any, right: Any, weights: Any, out: Any, start: Any, stop: Any
) -> None:
    """out[left] += weight table[right] and the reverse, in these columns."""
    for b in range(len(left)):
        row, into = table[left[b], start:stop], out[left[b], start:stop]
        for j in range(right.shape[1]):
            weight = weights[b, j]
            other, into_other = table[right[b, j], start:stop], out[right[b, j], start:stop]
            for d in range(row.shape[0]):
                into[d] += weight * other[d]
                into_other[d] += weight * row[d]


def count_rows(n: int, *rows: Tensor) -> Tensor:
    """How often each of 0..n-1 stands in the rows. (n,)"""
    flat = np.concatenate([part.cpu().numpy().ravel() for part in rows])
    return torch.from_numpy(np.bincount(flat, minlength=n))
