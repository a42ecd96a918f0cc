"""The compiled scores of pairs of rows of one table, and the sums that are their gradient.

The rows stand anywhere in a table that no fast cache holds, so what takes time is to wait for them:
each is asked for while the ones before it are being scored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from llvmlite import ir
from numba import njit, types

from ltocf.graph.kernels.vectors import (
    BYTES,
    INDEX,
    INTEGER,
    REGISTER_BYTES,
    VectorCode,
    compiled,
    intrinsic,
)

AHEAD = 8  # rows that are on their way


@cache
def compile_scores(dtype: str, width: int) -> Callable[..., None]:
    """out[b, column + j] = <table[left[b]], table[first + right[b, j]]>; where rows are whole
    registers, that is faster."""
    real = getattr(types, dtype)
    if width * real.bitwidth // 8 % REGISTER_BYTES:
        return cast(Callable[..., None], _score_any)

    @compiled(real[:, ::1], INTEGER[::1], INTEGER[:, ::1], INTEGER, real[:, ::1], INTEGER)
    def score(table, left, right, first, out, column):  # type: ignore[no-untyped-def]
        n, flat = right.shape[1], right.reshape(right.size)
        for b in range(len(left)):
            for j in range(n):
                at = b * n + j
                _fetch(width, first + flat[min(at + AHEAD, right.size - 1)], 0, table)
                out[b, column + j] = _dot(width, left[b], first + flat[at], table)

    return cast(Callable[..., None], score)


@cache
def compile_scatter(dtype: str, width: int) -> Callable[..., None]:
    """out[left] += weight table[right] and the reverse, in so many columns from `column` on."""
    real = getattr(types, dtype)
    if width * real.bitwidth // 8 % REGISTER_BYTES:
        return cast(Callable[..., None], _scatter_any)
    table = real[:, ::1]

    @compiled(table, INTEGER[::1], INTEGER[:, ::1], table, table, INTEGER, INTEGER)
    def scatter(table, left, right, weights, out, column, unused):  # type: ignore[no-untyped-def]
        n, flat = right.shape[1], right.reshape(right.size)
        for b in range(len(left)):
            ahead = left[min(b + AHEAD // 2, len(left) - 1)]
            _fetch(width, ahead, column, table)
            _fetch(width, ahead, column, out)
            for j in range(n):
                ahead = flat[min(b * n + j + AHEAD, right.size - 1)]
                _fetch(width, ahead, column, table)
                _fetch(width, ahead, column, out)
                _add_row(width, left[b], flat[b * n + j], column, weights[b, j], table, out)
                _add_row(width, flat[b * n + j], left[b], column, weights[b, j], table, out)

    return cast(Callable[..., None], scatter)


@njit(cache=True, nogil=True, fastmath=True)
def _scatter_any(
    table: Any, left: Any, right: Any, weights: Any, out: Any, column: Any, width: Any
) -> None:
    start, stop = column, column + width
    for b in range(len(left)):
        row, into = table[left[b], start:stop], out[left[b], start:stop]
        for j in range(right.shape[1]):
            weight = weights[b, j]
            other, into_other = table[right[b, j], start:stop], out[right[b, j], start:stop]
            for d in range(row.shape[0]):
                into[d] += weight * other[d]
                into_other[d] += weight * row[d]


@njit(cache=True, nogil=True, fastmath=True)
def _score_any(table: Any, left: Any, right: Any, first: Any, out: Any, column: Any) -> None:
    for b in range(len(left)):
        row = table[left[b]]
        for j in range(right.shape[1]):
            other = table[first + right[b, j]]
            total = row[0] * other[0]
            for d in range(1, row.shape[0]):
                total += row[d] * other[d]
            out[b, column + j] = total


@intrinsic(prefer_literal=True)
def _dot(context, width, left, right, table):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, table.dtype, signature, arguments)
        rows = code.table(3)
        values = code.load_row(rows.at(arguments[1]))
        return code.inner_product(values, rows.at(arguments[2]), ir.IntType(1)(0))

    return table.dtype(width, left, right, table), generate


@intrinsic(prefer_literal=True)
def _add_row(context, width, into, source, column, weight, table, out):  # type: ignore[no-untyped-def]
    """out[into] += weight table[source], in these columns."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, table.dtype, signature, arguments)
        _, into, source, column, weight, *_ = arguments
        weights, target = code.splat(weight), code.table(6).at(into, column)
        pairs = zip(
            code.load_row(code.table(5).at(source, column)), code.load_row(target), strict=True
        )
        code.store_row([code.add(old, code.multiply(weights, new)) for new, old in pairs], target)
        return context.get_dummy_value()

    return types.void(width, into, source, column, weight, table, out), generate


@intrinsic(prefer_literal=True)
def _fetch(context, width, row, column, table):  # type: ignore[no-untyped-def]
    """Ask for a row to be brought into the cache, and do not wait for it."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, table.dtype, signature, arguments)
        _, row, column, _ = arguments
        address = builder.bitcast(code.table(3).at(row, column), BYTES)
        for offset in code.offsets:
            code.fetch(builder.gep(address, [INDEX(offset * code.itemsize)]))
        return context.get_dummy_value()

    return types.void(width, row, column, table), generate
