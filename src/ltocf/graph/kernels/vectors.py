"""LLVM vector instructions on rows of tables, which Numba's compiler does not generate from loops.

From loops over the columns it makes code that keeps a row's sums in memory, because it cannot know
that the arrays do not overlap. In vector instructions they stay in registers: twice as fast, and
more for narrow blocks. An intrinsic takes the number of columns as a constant argument: a closure
over it would not be found in the cache on disk by the next process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir
from numba import extending, types

REGISTER_BYTES = 64  # one cache line, one AVX-512 register; LLVM splits it for other processors
INDEX = ir.IntType(64)
LANE = ir.IntType(32)
AHEAD = 16  # rows of a sum that are prefetched
BYTES = ir.IntType(8).as_pointer()
INTEGER, INTEGERS, SUMS = types.int64, types.int64[::1], types.float64[::1]
NODES = types.int32[::1]  # 32 bits, since the lists of neighbours are the largest of all arrays
intrinsic: Any = extending.intrinsic  # typed by Numba, not by Python


def compiles_for(instructions: str) -> bool:
    """Whether this processor has these, and Numba compiles for all that it has."""
    told = vars(numba.config)  # a module without types
    if told.get("CPU_NAME") or told.get("CPU_FEATURES") or not told.get("ENABLE_AVX", True):
        return False
    try:
        return bool(llvmlite.binding.get_host_cpu_features().get(instructions, False))
    except RuntimeError:  # LLVM cannot tell on some systems
        return False


@intrinsic
def fetch(typing: Any, array: Any, place: Any) -> Any:
    """Prefetch the cache line of an element of a one-dimensional array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        fetch_line(builder, builder.bitcast(builder.gep(data, [arguments[1]]), BYTES))
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def fetch_line(builder: ir.IRBuilder, address: Any) -> None:
    """The same, by the address in bytes."""
    kind = ir.FunctionType(ir.VoidType(), [address.type, LANE, LANE, LANE])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
    builder.call(prefetch, [address, LANE(0), LANE(3), LANE(1)])  # to read, close, data


def compiled(*arguments: Any) -> Any:
    """A decorator: compile for these types of arguments, or read from the cache on disk."""
    return numba.njit(
        types.void(*arguments), nogil=True, fastmath=True, boundscheck=False, cache=True
    )


class Table:
    """A C-contiguous array among the arguments of the function being generated."""

    def __init__(self, builder: ir.IRBuilder, array: Any) -> None:
        self.builder, self.data, self.shape = builder, array.data, array.shape

    def at(self, row: Any, column: Any = None) -> Any:
        """The address of an element."""
        place = self.builder.mul(row, self.builder.extract_value(self.shape, 1))
        if column is not None:
            place = self.builder.add(place, column)
        return self.builder.gep(self.data, [place])

    @property
    def is_empty(self) -> Any:
        return self.builder.icmp_signed("==", self.builder.extract_value(self.shape, 0), INDEX(0))


class VectorCode:
    """Emits code on rows of numbers, as lists of vectors that fill a register each.

    The function's first argument is their number, a constant that the compiler knows.
    """

    def __init__(
        self, context: Any, builder: Any, real: Any, signature: Any, arguments: Any
    ) -> None:
        self.context, self.builder = context, builder
        self.signature, self.arguments = signature, arguments
        self.itemsize = itemsize = real.bitwidth // 8
        width = signature.args[0].literal_value
        self.lanes = REGISTER_BYTES // itemsize
        self.real = ir.FloatType() if itemsize == 4 else ir.DoubleType()
        self.vector = ir.VectorType(self.real, self.lanes)
        self.zero = ir.Constant(self.vector, None)
        self.offsets = range(0, width, self.lanes)

    def table(self, position: int) -> Table:
        make = self.context.make_array(self.signature.args[position])
        return Table(self.builder, make(self.context, self.builder, self.arguments[position]))

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=("fast",))

    def multiply(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=("fast",))

    def subtract_products(self, a: Any, b: Any, c: Any, d: Any) -> Any:
        """a b - c d"""
        return self.builder.fsub(self.multiply(a, b), self.multiply(c, d), flags=("fast",))

    def splat(self, scalar: Any) -> Any:
        """A vector of this scalar in every lane."""
        one = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), scalar, LANE(0))
        return self.builder.shuffle_vector(one, one, _lanes([0] * self.lanes))

    def _address(self, row: Any, offset: int) -> Any:
        return self.builder.bitcast(
            self.builder.gep(row, [INDEX(offset)]), self.vector.as_pointer()
        )

    def load_row(self, row: Any) -> list[Any]:
        return [self.builder.load(self._address(row, k), align=self.itemsize) for k in self.offsets]

    def store_row(self, values: list[Any], row: Any) -> None:
        for offset, value in zip(self.offsets, values, strict=True):
            self.builder.store(value, self._address(row, offset), align=self.itemsize)

    def slot(self, kind: Any) -> Any:
        """A stack slot for one value, allocated once per call and not in each iteration of a
        loop."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    @contextmanager
    def loop(self, first: Any, last: Any) -> Iterator[Any]:
        """What the body emits is done for each index from first to last, the last one excluded."""
        builder, before = self.builder, self.builder.block
        head, body, after = map(builder.append_basic_block, ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(INDEX)
        index.add_incoming(first, before)
        builder.cbranch(builder.icmp_signed("<", index, last), body, after)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, INDEX(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    def sum_rows(
        self,
        table: Table,
        rows: Table,
        first: Any,
        last: Any,
        column: Any = None,
        nodes: Table | None = None,
        weights: Table | None = None,
    ) -> list[Any]:
        """sum of table[r, column:] for r = rows[i], i from first to last, the last one excluded.
        With nodes, r = nodes[rows[i]]; with weights, each row times weights[r]."""
        builder = self.builder
        # Stack slots of vectors become registers when LLVM optimises.
        sums = [self.slot(self.vector) for _ in self.offsets]
        for total in sums:
            builder.store(self.zero, total)
        with self.loop(first, last) as i:
            row = builder.zext(builder.load(builder.gep(rows.data, [i])), INDEX)
            if nodes is None:
                self._fetch_ahead(table, rows, i)
            else:
                row = builder.zext(builder.load(builder.gep(nodes.data, [row])), INDEX)
            terms = self.load_row(table.at(row, column))
            if weights is not None:
                weight = self.splat(builder.load(builder.gep(weights.data, [row])))
                terms = [self.multiply(weight, term) for term in terms]
            for total, term in zip(sums, terms, strict=True):
                builder.store(self.add(builder.load(total), term), total)
        return [builder.load(total) for total in sums]

    def _fetch_ahead(self, table: Table, rows: Table, i: Any) -> None:
        """Prefetch the row that is needed some iterations later, even if it belongs to the next
        sum."""
        builder = self.builder
        last = builder.sub(builder.extract_value(rows.shape, 0), INDEX(1))
        later = builder.add(i, INDEX(AHEAD))
        later = builder.select(builder.icmp_signed("<", later, last), later, last)
        row = builder.zext(builder.load(builder.gep(rows.data, [later])), INDEX)
        address = builder.bitcast(table.at(row), BYTES)
        for offset in self.offsets:
            self.fetch(builder.gep(address, [INDEX(offset * self.itemsize)]))

    def fetch(self, address: Any) -> None:
        """Ask for the cache line at an address (of bytes), and do not wait for it."""
        fetch_line(self.builder, address)

    def inner_product(self, values: list[Any], other_row: Any, is_zero: Any) -> Any:
        """<values, other_row>, or 0 without reading the other row."""
        builder = self.builder
        result = self.slot(self.real)
        builder.store(ir.Constant(self.real, 0.0), result)
        with builder.if_then(builder.not_(is_zero)):
            total = self.zero
            for value, factor in zip(values, self.load_row(other_row), strict=True):
                total = self.add(total, self.multiply(value, factor))
            builder.store(self._sum_lanes(total), result)
        return builder.load(result)

    def _sum_lanes(self, vector: Any) -> Any:
        while (half := vector.type.count // 2) > 0:
            low, high = (
                self.builder.shuffle_vector(vector, vector, _lanes(range(start, start + half)))
                for start in (0, half)
            )
            vector = self.add(low, high)
        return self.builder.extract_element(vector, LANE(0))


def _lanes(indices: Any) -> ir.Constant:
    return ir.Constant(ir.VectorType(LANE, len(indices)), list(indices))
