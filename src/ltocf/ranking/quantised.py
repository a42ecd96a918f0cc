"""Scores from vectors rounded to 8 bits, to find the few items whose exact scores are then
computed.

Vectors are rounded to -127..127, four dimensions to a 32-bit number, and multiplied by instructions
that do four products at once where the processor has them. Sums of whole numbers are exact, so the
candidates are the same on every processor and for any number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numpy.typing import NDArray

from ltocf.data.interactions import Rows
from ltocf.graph.kernels.vectors import INDEX, LANE, VectorCode, compiles_for, intrinsic
from ltocf.machine.threads import share_out
from ltocf.ranking.kernels import has

Vectors = NDArray[np.float32]
LANES, VECTORS = 16, 2  # items of a vector, and vectors of a block: their sums stay in registers
BLOCK = LANES * VECTORS
USERS = 4  # users at a time, for the same reason
PANEL = 128  # blocks of items that stay in the second-level cache for many users
TURN = 256  # users for whom a panel is read once
LARGEST, SHIFT = 127, 128  # of rounded numbers; items are shifted, as the instructions need
NOTHING = np.iinfo(np.int32).min


class QuantisedItems(NamedTuple):
    """Rounded vectors of items, in blocks, and what a dimension of users is multiplied by."""

    rows: Rows  # (n,) which items these are
    packed: NDArray[np.int32]  # (blocks, dim / 4, BLOCK)
    scale: Vectors  # (dim,)

    @classmethod
    def of(cls, vectors: Vectors, rows: Rows) -> QuantisedItems:
        """Of these rows of `vectors` (n_items, dim). Each dimension has the whole range."""
        dim = vectors.shape[1]
        scale: Vectors = np.zeros(dim, np.float32)
        for start in range(0, len(rows), BLOCK * PANEL):
            some = vectors[rows[start : start + BLOCK * PANEL]]
            scale = np.maximum(scale, np.abs(some).max(axis=0))
        scale /= LARGEST
        packed = np.empty((-(-len(rows) // BLOCK), -(-dim // 4), BLOCK), np.int32)
        for start in range(0, len(packed), PANEL):
            these = rows[start * BLOCK : (start + PANEL) * BLOCK]
            whole = np.zeros((len(packed[start : start + PANEL]) * BLOCK, packed.shape[1] * 4))
            whole[: len(these), :dim] = vectors[these] / np.where(scale > 0, scale, 1)
            words = (np.rint(whole) + SHIFT).astype(np.uint8).view(np.int32)
            packed[start : start + PANEL] = words.reshape(-1, BLOCK, packed.shape[1]).swapaxes(1, 2)
        return cls(rows, packed, scale)

    def candidates(
        self, users: Vectors, pool: int, indptr: NDArray[np.int64], seen: Rows, owners: Rows
    ) -> Rows:
        """For each vector of a user, the `pool` items of the best rounded scores in any order, or
        -1 where there are fewer. User b has seen[indptr[owners[b]]:indptr[owners[b] + 1]], which
        are left out. (len(users), pool)"""
        packed, sums = self._rounded(users)
        found = np.full((len(users), pool), -1, np.int32)
        scores = np.full((len(users), pool), NOTHING, np.int32)
        arrays = self.packed, self.rows, packed, sums, indptr, seen, owners, found, scores
        share_out(lambda first, last: _search(first, last, *arrays), len(users), TURN)
        return found

    def _rounded(self, users: Vectors) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Users in the form that the kernel needs, and the initial values of their sums. Each
        user's numbers use the whole range, since only the order of that user's scores counts."""
        whole = np.zeros((-(-len(users) // USERS) * USERS, self.packed.shape[1] * 4), np.float32)
        whole[: len(users), : users.shape[1]] = users * self.scale
        largest = np.abs(whole).max(axis=1, keepdims=True)
        bytes_ = np.rint(whole * (LARGEST / np.where(largest > 0, largest, 1))).astype(np.int8)
        return bytes_.view(np.int32), -SHIFT * bytes_.sum(axis=1, dtype=np.int32)


@njit(cache=True, nogil=True)
def _search(
    first: Any, last: Any, items: Any, rows: Any, users: Any, sums: Any, indptr: Any, seen: Any,
    owners: Any, found: Any, scores: Any,
) -> None:  # fmt: skip
    """Fill the heaps `found` and `scores` of users first..last, `first` a multiple of USERS."""
    out, bounds = np.empty((USERS, BLOCK), np.int32), np.empty(USERS, np.int32)
    for panel in range(0, len(items), PANEL):
        for group in range(first, last, USERS):
            count = min(USERS, last - group)
            for u in range(USERS):  # the padding of the last group is never above its bound
                bounds[u] = scores[group + u, 0] if u < count else np.int32(0x7FFFFFFF)
            for block in range(panel, min(panel + PANEL, len(items))):
                if not _any_above(USERS, users, group, items, block, sums, bounds, out):
                    continue
                place = block * BLOCK
                for u in range(count):
                    b = group + u
                    owned = seen[indptr[owners[b]] : indptr[owners[b] + 1]]
                    for i in range(min(BLOCK, len(rows) - place)):
                        if out[u, i] > bounds[u] and not has(owned, rows[place + i]):
                            _replace_least(scores[b], found[b], out[u, i], rows[place + i])
                            bounds[u] = scores[b, 0]


@njit(cache=True, nogil=True)
def _replace_least(scores: Any, found: Any, score: Any, item: Any) -> None:
    """Replace the least element of a heap."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= len(scores):
            break
        if child + 1 < len(scores) and scores[child + 1] < scores[child]:
            child += 1
        if scores[child] >= score:
            break
        scores[place], found[place] = scores[child], found[child]
        place = child
    scores[place], found[place] = score, item


def _multiplies_bytes() -> bool:
    return compiles_for("avx512vnni")


@intrinsic(prefer_literal=True)
def _any_above(
    typing: Any, count: Any, users: Any, user: Any, items: Any, block: Any, sums: Any, bounds: Any,
    out: Any,
) -> Any:  # fmt: skip
    """Whether one of `count` users, from row `user` on, has a score above their bound in a block of
    items; if so, out[u] are the scores of user u."""
    signature = types.boolean(count, users, user, items, block, sums, bounds, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, types.float32, signature, arguments)
        lines = _Words(code)
        return lines.any_above(signature.args[0].literal_value, arguments[2], arguments[4])

    return signature, generate


class _Words:
    """Emits the products of users' and items' words of four bytes."""

    def __init__(self, code: VectorCode) -> None:
        self.code, self.builder = code, code.builder
        self.vector = ir.VectorType(LANE, LANES)
        self.multiply = self._in_bytes if _multiplies_bytes() else self._in_halves

    def any_above(self, count: int, user: Any, block: Any) -> Any:
        builder, code = self.builder, self.code
        users, items, sums, bounds, out = (code.table(n) for n in (1, 3, 5, 6, 7))
        words = builder.extract_value(users.shape, 1)
        rows = [builder.mul(builder.add(user, INDEX(u)), words) for u in range(count)]
        totals = [[code.slot(self.vector) for _ in range(VECTORS)] for _ in range(count)]
        for u, of_user in enumerate(totals):
            start = builder.load(builder.gep(sums.data, [builder.add(user, INDEX(u))]))
            for total in of_user:
                builder.store(self._splat(start), total)
        first = builder.mul(builder.mul(block, words), INDEX(BLOCK))
        with code.loop(INDEX(0), words) as word:
            place = builder.add(first, builder.mul(word, INDEX(BLOCK)))
            of_items = [self._load(items.data, place, n) for n in range(VECTORS)]
            for row, of_user in zip(rows, totals, strict=True):
                theirs = self._splat(
                    builder.load(builder.gep(users.data, [builder.add(row, word)]))
                )
                for total, values in zip(of_user, of_items, strict=True):
                    builder.store(self.multiply(builder.load(total), values, theirs), total)
        above = None
        for u, of_user in enumerate(totals):
            bound = self._splat(builder.load(builder.gep(bounds.data, [INDEX(u)])))
            for total in of_user:
                these = builder.icmp_signed(">", builder.load(total), bound)
                above = these if above is None else builder.or_(above, these)
        found = builder.icmp_unsigned(
            "!=", builder.bitcast(above, ir.IntType(LANES)), ir.IntType(LANES)(0)
        )
        with builder.if_then(found, likely=False):
            for u, of_user in enumerate(totals):
                for n, total in enumerate(of_user):
                    address = self._address(out.data, INDEX(u * BLOCK), n)
                    builder.store(builder.load(total), address, align=4)
        return found

    def _address(self, data: Any, place: Any, n: int) -> Any:
        address = self.builder.gep(data, [self.builder.add(place, INDEX(n * LANES))])
        return self.builder.bitcast(address, self.vector.as_pointer())

    def _load(self, data: Any, place: Any, n: int) -> Any:
        return self.builder.load(self._address(data, place, n), align=4)

    def _splat(self, scalar: Any) -> Any:
        builder = self.builder
        one = builder.insert_element(ir.Constant(self.vector, ir.Undefined), scalar, LANE(0))
        return builder.shuffle_vector(one, one, ir.Constant(self.vector, [0] * LANES))

    def _in_bytes(self, total: Any, items: Any, users: Any) -> Any:
        """total + the four products of bytes in each lane, by one instruction."""
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = "llvm.x86.avx512.vpdpbusd.512"
        dot = self.builder.module.globals.get(name) or ir.Function(self.builder.module, kind, name)
        return self.builder.call(dot, [total, items, users])

    def _in_halves(self, total: Any, items: Any, users: Any) -> Any:
        """The same on any processor: bytes at even and at odd places are widened to 16 bits and
        multiplied in pairs, for which many processors have an instruction."""
        builder = self.builder
        halves = ir.VectorType(ir.IntType(16), 2 * LANES)
        eight, low = (ir.Constant(halves, [n] * 2 * LANES) for n in (8, 0xFF))
        items, users = builder.bitcast(items, halves), builder.bitcast(users, halves)
        even = builder.and_(items, low), builder.ashr(builder.shl(users, eight), eight)
        odd = builder.lshr(items, eight), builder.ashr(users, eight)
        wide = ir.VectorType(LANE, 2 * LANES)
        for pair in (even, odd):
            product = builder.mul(*(builder.sext(half, wide) for half in pair))
            for start in (0, 1):
                lanes = ir.Constant(self.vector, list(range(start, 2 * LANES, 2)))
                total = builder.add(total, builder.shuffle_vector(product, product, lanes))
        return total
