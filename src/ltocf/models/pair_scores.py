"""Scores of pairs of rows of one table, and the gradient of the table in one pass.

torch would gather every operand, and its backward would fill a table of zeros for each of them: on
a CPU that costs as much as the propagation itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ltocf.graph.operator import kernels_can_read
from ltocf.machine.threads import share_out, thread_count
from ltocf.models.score_kernels import compile_scatter, compile_scores

RANGE = 1 << 16  # scores computed by one thread at a time; it takes milliseconds
COLUMNS = 16  # float32 numbers of a cache line


def pair_scores(table: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """<table[left[b]], table[right[b, j]]>, for left (batch,) and right (batch, n). (batch, n)"""
    if not kernels_can_read(table):
        return dot_products(table, left, right)
    scores: Tensor = _PairScores.apply(table, left, right)  # type: ignore[no-untyped-call]
    return scores


def squared_norms(
    table: Tensor, times: Tensor, empty_like: Callable[[Tensor], Tensor] = torch.empty_like
) -> Tensor:
    """sum_r times[r] |table[r]|^2; `empty_like` makes room for the gradient."""
    total: Tensor = _SquaredNorms.apply(table, times, empty_like)  # type: ignore[no-untyped-call]
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
    scores = table.new_empty(right.shape)
    write_scores_(table, left, right, 0, scores, 0)
    return scores


def write_scores_(
    table: Tensor, left: Tensor, right: Tensor, first: int, out: Tensor, column: int
) -> None:
    """out[b, column + j] = <table[left[b]], table[first + right[b, j]]>"""
    if not kernels_can_read(table):
        products = torch.einsum("bd,bnd->bn", table[left], table[first + right])
        out[:, column : column + right.shape[1]] = products
        return
    rows, ours, theirs, scores = (tensor.numpy() for tensor in (table, left, right, out))
    score = compile_scores(rows.dtype.name, rows.shape[1])

    def run(a: int, b: int) -> None:
        score(rows, ours[a:b], theirs[a:b], first, scores[a:b], column)

    share_out(run, len(ours), max(1, RANGE // max(right.shape[1], 1)))


def add_products_(
    table: Tensor, left: Tensor, right: Tensor, weights: Tensor, gradient: Tensor
) -> None:
    """To the gradient of the table, add that of the sum of weights[b, j] times the pair's score.

    A thread owns columns, not pairs: no two write the same number, and every sum is in the order of
    the batch for any number of threads."""
    if not kernels_can_read(table):
        gradient.index_add_(0, left, torch.einsum("bn,bnd->bd", weights, table[right]))
        outer = weights[:, :, None] * table[left][:, None]
        gradient.index_add_(0, right.flatten(), outer.flatten(0, 1))
        return
    rows, out, by_score = table.numpy(), gradient.numpy(), weights.contiguous().numpy()
    ours, theirs = left.numpy(), right.contiguous().numpy()

    dim, line = table.shape[1], COLUMNS * 4 // table.element_size()
    width = -(-dim // (line * thread_count())) * line  # a thread has whole cache lines
    scatters = {n: compile_scatter(rows.dtype.name, n) for n in {min(width, dim), dim % width} if n}

    def run(first: int, last: int) -> None:
        scatters[last - first](rows, ours, theirs, by_score, out, first, last - first)

    share_out(run, dim, width)


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
    def forward(
        ctx: Any, table: Tensor, times: Tensor, empty_like: Callable[[Tensor], Tensor]
    ) -> Tensor:
        ctx.save_for_backward(table, times)
        ctx.empty_like = empty_like
        total: Tensor = times @ torch.linalg.vector_norm(table, dim=1).square()
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        table, times = ctx.saved_tensors
        out = ctx.empty_like(table.detach())
        return torch.mul(table.detach(), (2 * upstream * times)[:, None], out=out), None, None


def count_rows(n: int, *rows: Tensor) -> Tensor:
    """How often each of 0..n-1 stands in the rows. (n,)"""
    return torch.cat([part.flatten() for part in rows]).bincount(minlength=n)
