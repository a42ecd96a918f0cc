"""The compiled CPU kernel of one product with the adjacency, without copies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types

from ltocf.graph.kernels.vectors import INTEGER, INTEGERS, NODES, VectorCode, compiled, intrinsic


@cache
def compile_product(dtype: str, width: int) -> Callable[..., None]:
    """out = S B S E for a range of the order and a block of columns; S is diagonal, `scale`.

    Row r of the adjacency is node order[r]; E, out and scale are read and written at that node's
    row."""
    real = getattr(types, dtype)
    table = real[:, ::1]

    graph = (INTEGERS, NODES, NODES)

    @compiled(INTEGER, INTEGER, *graph, real[::1], INTEGER, table, table)
    def product(first, last, indptr, neighbours, order, scale, column, E, out):  # type: ignore[no-untyped-def]
        for place in range(first, last):
            row, start, stop = np.int64(order[place]), indptr[place], indptr[place + 1]
            _product_row(
                width, row, column, scale[row], start, stop, neighbours, order, scale, E, out
            )

    return cast(Callable[..., None], product)


@intrinsic(prefer_literal=True)
def _product_row(  # type: ignore[no-untyped-def]
    context, width, row, column, own, first, last, neighbours, order, scale, E, out
):
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, E.dtype, signature, arguments)
        _, row, column, own, first, last, *_ = arguments
        rows, nodes, scales, table, result = (code.table(i) for i in range(6, 11))
        sums = code.sum_rows(table, rows, first, last, column, nodes, scales)
        own = code.splat(own)
        code.store_row([code.multiply(own, total) for total in sums], result.at(row, column))
        return context.get_dummy_value()

    arguments = (width, row, column, own, first, last, neighbours, order, scale, E, out)
    return types.void(*arguments), generate
