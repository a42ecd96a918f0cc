"""The compiled CPU kernels of the Chebyshev recurrence, for a block of embedding columns.

The normalised adjacency is A = S B S, B of zeros and ones and S = D^-1/2, so the recurrence runs on
Z_k = S T_k(A) E: it needs the neighbours and the degrees, and never the values of A. Columns never
mix in h(A) E, so a block of them, small enough to stay in cache for the most part, runs on its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, cast

import numba
from llvmlite import ir
from numba import extending, types

from ltocf.kernels.vectors import VectorCode

QUIET_SECONDS = 2.0
intrinsic: Any = extending.intrinsic  # typed by Numba, not by Python


class Kernels(NamedTuple):
    """For blocks of a fixed number of columns, from `column` on in E, out and other.

    `bounds` cut the rows into ranges; products[i] is the part of range i in the inner product
    <T, other>, or 0 if other has no rows. `root` is the square root of the degrees.
    """

    start: Callable[..., None]
    """T = E; current = S T; previous = 0; out = weight T"""

    step: Callable[..., None]
    """previous = alpha D^-1 B current - beta previous; T = S^-1 previous; out += weight T"""


@cache
def compile_kernels(dtype: str, width: int) -> Kernels:
    """Compiled at the first call on a machine, then read from disk."""
    with _explain_waiting("compiling kernels for this machine, once ..."):
        return Kernels(_start_kernel(dtype, width), _step_kernel(dtype, width))


@contextmanager
def _explain_waiting(message: str) -> Iterator[None]:
    timer = threading.Timer(QUIET_SECONDS, print, [message], {"file": sys.stderr, "flush": True})
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _compiled(*arguments: Any) -> Any:
    return numba.njit(
        types.void(*arguments), nogil=True, fastmath=True, boundscheck=False, cache=True
    )


def _start_kernel(dtype: str, width: int) -> Callable[..., None]:
    real, integers = getattr(types, dtype), types.int64[::1]
    flat, table, sums = real[::1], real[:, ::1], types.float64[::1]
    arguments = (integers, flat, table, table, table, real, types.int64, table, table, sums)

    @_compiled(*arguments)
    def start(bounds, root, E, current, previous, weight, column, out, other, products):  # type: ignore[no-untyped-def]
        for part in range(len(bounds) - 1):
            total = 0.0
            for row in range(bounds[part], bounds[part + 1]):
                scale = root.dtype.type(1) / root[row]
                total += _start_row(
                    width, row, column, scale, weight, E, current, previous, out, other
                )
            products[part] = total

    return cast(Callable[..., None], start)


def _step_kernel(dtype: str, width: int) -> Callable[..., None]:
    real, integers = getattr(types, dtype), types.int64[::1]
    flat, table, sums = real[::1], real[:, ::1], types.float64[::1]
    graph = (integers, flat, integers, types.int32[::1])
    arguments = (real, real, table, table, real, types.int64, table, table, sums)

    @_compiled(*graph, *arguments)
    def step(  # type: ignore[no-untyped-def]
        bounds, root, indptr, neighbours, alpha, beta, current, previous, weight, column, out,
        other, products,
    ):  # fmt: skip
        for part in range(len(bounds) - 1):
            total = 0.0
            for row in range(bounds[part], bounds[part + 1]):
                factor, share = alpha / (root[row] * root[row]), weight * root[row]
                product = _step_row(
                    width, row, column, factor, beta, share, indptr[row], indptr[row + 1],
                    neighbours, current, previous, out, other,
                )  # fmt: skip
                total += root[row] * product
            products[part] = total

    return cast(Callable[..., None], step)


# From loops over the columns Numba makes code that keeps a row's sums in memory, because it cannot
# know that the arrays do not overlap. In these vector instructions they stay in registers: twice as
# fast, and more for narrow blocks. They take the width as a constant argument: closures of it would
# be strangers to the cache on disk in the next process.


@intrinsic(prefer_literal=True)
def _start_row(context, width, row, column, scale, weight, E, current, previous, out, other):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, signature, arguments)
        row, column, scale, weight = arguments[1:5]
        E, current, previous, out, other = (code.table(position) for position in range(5, 10))
        scale, weight = code.splat(scale), code.splat(weight)
        values = code.load_row(E.at(row, column))
        code.store_row([code.multiply(scale, value) for value in values], current.at(row))
        code.store_row([code.zero for _ in values], previous.at(row))
        code.store_row([code.multiply(weight, value) for value in values], out.at(row, column))
        return code.inner_product(values, other.at(row, column), other.is_empty)

    return scale(width, row, column, scale, weight, E, current, previous, out, other), generate


@intrinsic(prefer_literal=True)
def _step_row(  # type: ignore[no-untyped-def]
    context, width, row, column, factor, beta, share, first, last, neighbours, current, previous,
    out, other,
):  # fmt: skip
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, signature, arguments)
        row, column, factor, beta, share, first, last = arguments[1:8]
        neighbours, current, previous, out, other = (code.table(i) for i in range(8, 13))
        factor, beta, share = code.splat(factor), code.splat(beta), code.splat(share)
        sums = code.sum_rows(current, neighbours, first, last)
        old = code.load_row(previous.at(row))
        values = [
            code.subtract_products(factor, a, beta, b) for a, b in zip(sums, old, strict=True)
        ]
        code.store_row(values, previous.at(row))
        kept = code.load_row(out.at(row, column))
        kept = [code.add(a, code.multiply(share, b)) for a, b in zip(kept, values, strict=True)]
        code.store_row(kept, out.at(row, column))
        return code.inner_product(values, other.at(row, column), other.is_empty)

    arguments = (
        width, row, column, factor, beta, share, first, last, neighbours, current, previous, out,
        other,
    )  # fmt: skip
    return factor(*arguments), generate
