"""The compiled CPU kernels of the Chebyshev recurrence, for a block of embedding columns.

The normalised adjacency is A = S B S, B of zeros and ones and S = D^-1/2, so the recurrence runs on
Z_k = S T_k(A) E: it needs the neighbours and the degrees, and never the values of A. Columns never
mix in h(A) E, so a block of them that is small enough to stay mostly in cache runs on its own. Rows
of neighbours that may not be in cache are prefetched some iterations before they are needed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from ltocf.graph.kernels.vectors import (
    INTEGER,
    INTEGERS,
    NODES,
    SUMS,
    VectorCode,
    compiled,
    intrinsic,
)

QUIET_SECONDS = 2.0
logger = logging.getLogger(__name__)  # without a handler, Python shows a warning on stderr


class Kernels(NamedTuple):
    """For a block of columns, from `column` on in the tables E, other and out.

    Row r of the block is row order[r] of those tables. The block's own tables are `current` and
    `previous` of the recurrence, the sum so far `total`, and the other's block `beside`; other and
    beside may have no rows. `bounds` cut the rows into ranges; products[i] is the part of range i
    in the inner product <T, other>. `root` is the square root of the degrees.
    """

    start: Callable[..., None]
    """T = E; beside = other; current = S T; previous = 0; total = weight T"""

    step: Callable[..., None]
    """previous = alpha D^-1 B current - beta previous; T = S^-1 previous; total += weight T"""

    finish: Callable[..., None]
    """out = total"""


@cache
def compile_kernels(dtype: str, width: int) -> Kernels:
    """Compiled at the first call on a machine, then read from disk."""
    with _explain_waiting("compiling kernels for this machine, once ..."):
        make = (_start_kernel, _step_kernel, _finish_kernel)
        return Kernels(*(kernel(getattr(types, dtype), width) for kernel in make))


@contextmanager
def _explain_waiting(message: str) -> Iterator[None]:
    timer = threading.Timer(QUIET_SECONDS, _say_once, [message])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@cache
def _say_once(message: str) -> None:
    logger.warning(message)


def _start_kernel(real: Any, width: int) -> Any:
    table = real[:, ::1]
    tables = (table, table, INTEGER, real, table, table, table, table)

    @compiled(INTEGERS, NODES, real[::1], *tables, SUMS)
    def start(  # type: ignore[no-untyped-def]
        bounds, order, root, E, other, column, weight, current, previous, total, beside, products
    ):
        for part in range(len(bounds) - 1):
            product = 0.0
            for row in range(bounds[part], bounds[part + 1]):
                scale = root.dtype.type(1) / root[row]
                product += _start_row(
                    width, row, np.int64(order[row]), column, scale, weight, E, other, current,
                    previous, total, beside,
                )  # fmt: skip
            products[part] = product

    return start


def _step_kernel(real: Any, width: int) -> Any:
    table = real[:, ::1]
    graph = (INTEGERS, real[::1], INTEGERS, NODES)

    @compiled(*graph, real, real, real, table, table, table, table, SUMS)
    def step(  # type: ignore[no-untyped-def]
        bounds, root, indptr, neighbours, alpha, beta, weight, current, previous, total, beside,
        products,
    ):  # fmt: skip
        for part in range(len(bounds) - 1):
            product = 0.0
            for row in range(bounds[part], bounds[part + 1]):
                factor, share = alpha / (root[row] * root[row]), weight * root[row]
                product += root[row] * _step_row(
                    width, row, factor, beta, share, indptr[row], indptr[row + 1], neighbours,
                    current, previous, total, beside,
                )  # fmt: skip
            products[part] = product

    return step


def _finish_kernel(real: Any, width: int) -> Any:
    table = real[:, ::1]

    @compiled(INTEGERS, NODES, INTEGER, table, table)
    def finish(bounds, order, column, total, out):  # type: ignore[no-untyped-def]
        for row in range(bounds[0], bounds[-1]):
            _copy_row(width, row, np.int64(order[row]), column, total, out)

    return finish


@intrinsic(prefer_literal=True)
def _start_row(  # type: ignore[no-untyped-def]
    context, width, row, source, column, scale, weight, E, other, current, previous, total, beside
):
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, E.dtype, signature, arguments)
        _, row, source, column, scale, weight, *_ = arguments
        scales, weights = code.splat(scale), code.splat(weight)
        table, others, now, before, sums, copy = (code.table(i) for i in range(6, 12))
        values = code.load_row(table.at(source, column))
        code.store_row([code.multiply(scales, value) for value in values], now.at(row))
        code.store_row([code.zero for _ in values], before.at(row))
        code.store_row([code.multiply(weights, value) for value in values], sums.at(row))
        with builder.if_then(builder.not_(others.is_empty)):
            code.store_row(code.load_row(others.at(source, column)), copy.at(row))
        return code.inner_product(values, copy.at(row), copy.is_empty)

    arguments = (
        width, row, source, column, scale, weight, E, other, current, previous, total, beside
    )  # fmt: skip
    return scale(*arguments), generate


@intrinsic(prefer_literal=True)
def _step_row(  # type: ignore[no-untyped-def]
    context, width, row, factor, beta, share, first, last, neighbours, current, previous, total,
    beside,
):  # fmt: skip
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, current.dtype, signature, arguments)
        _, row, factor, beta, share, first, last, *_ = arguments
        factors, betas, shares = (code.splat(scalar) for scalar in (factor, beta, share))
        rows, now, before, sums, copy = (code.table(i) for i in range(7, 12))
        pairs = zip(
            code.sum_rows(now, rows, first, last), code.load_row(before.at(row)), strict=True
        )
        values = [code.subtract_products(factors, new, betas, old) for new, old in pairs]
        code.store_row(values, before.at(row))
        pairs = zip(code.load_row(sums.at(row)), values, strict=True)
        code.store_row([code.add(a, code.multiply(shares, b)) for a, b in pairs], sums.at(row))
        return code.inner_product(values, copy.at(row), copy.is_empty)

    arguments = (
        width, row, factor, beta, share, first, last, neighbours, current, previous, total, beside
    )  # fmt: skip
    return factor(*arguments), generate


@intrinsic(prefer_literal=True)
def _copy_row(context, width, row, target, column, total, out):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, total.dtype, signature, arguments)
        row, target, column = arguments[1:4]
        code.store_row(code.load_row(code.table(4).at(row)), code.table(5).at(target, column))
        return context.get_dummy_value()

    return types.void(width, row, target, column, total, out), generate
