"""The best items by products of vectors, without a table of scores.

To write all scores to memory and to read them again takes longer than to compute them. Here scores
stay in registers, where they are compared with what the users' lists have so far; the few that
reach it go into the lists. Each score is summed in the same order of dimensions wherever its user
and its item are, so lists do not depend on tiles or threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numpy.typing import NDArray

from ltocf.data.interactions import Rows
from ltocf.graph.kernels.vectors import INDEX, VectorCode, compiles_for, intrinsic
from ltocf.machine.threads import share_out
from ltocf.ranking.kernels import has
from ltocf.tables import Tables

Table = NDArray[np.float32]
LANES = 16  # items of a vector of 64 bytes
PANEL_BYTES = 2**19  # of items that stay in the second-level cache for many users
TURN = 256  # users for whom a panel is read once
SOME_BLOCKS = 256  # of items, packed at a time
ROUNDING = np.float32(1e-4)  # largest error of a product, relative to the lengths of its vectors

# Users and vectors of items whose sums stay in registers together. AVX-512 has 32 registers of 64
# bytes; where they are smaller, a vector takes several.
USERS, VECTORS = (8, 2) if compiles_for("avx512f") else (6, 1)
BLOCK = LANES * VECTORS


class PackedItems(NamedTuple):
    """Vectors of items in the order that the kernel reads, the longest vectors first."""

    rows: Rows  # (n,) which items these are
    packed: Table  # (blocks, dim, BLOCK)
    longest: Table  # (blocks,) the length of a block's longest vector

    @classmethod
    def of(cls, vectors: Table, rows: Rows | None = None) -> PackedItems:
        """Of these rows of `vectors` (n_items, dim), or of all."""
        lengths, dim = _lengths(vectors), vectors.shape[1]
        rows = np.arange(len(vectors), dtype=np.int32) if rows is None else rows
        rows = rows[np.argsort(-lengths[rows], kind="stable")]
        packed = Tables().empty((-(-len(rows) // BLOCK), dim, BLOCK), np.float32)
        for start in range(0, len(packed), SOME_BLOCKS):
            some = packed[start : start + SOME_BLOCKS]
            these = rows[start * BLOCK :][: len(some) * BLOCK]
            whole = np.zeros((len(some) * BLOCK, dim), np.float32)
            whole[: len(these)] = vectors[these]
            some[:] = whole.reshape(len(some), BLOCK, dim).swapaxes(1, 2)
        return cls(rows, packed, lengths[rows[::BLOCK]])

    def best(
        self, users: Table, k: int, indptr: NDArray[np.int64], seen: Rows, owners: Rows
    ) -> tuple[Rows, Table]:
        """For each vector of a user the k best items and their scores, best first; ties go to the
        lower item, and where there are fewer the rest is -1 and -inf. User b has
        seen[indptr[owners[b]]:indptr[owners[b] + 1]], which are left out. (len(users), k) each"""
        whole = np.zeros((-(-len(users) // USERS) * USERS, users.shape[1]), np.float32)
        whole[: len(users)] = users
        found = np.full((len(users), k), -1, np.int32)
        scores = np.full((len(users), k), -np.inf, np.float32)
        panel = max(1, PANEL_BYTES // (4 * BLOCK * max(users.shape[1], 1)))
        arrays = (
            panel, self.packed, self.rows, self.longest, whole, _lengths(whole),
            indptr, seen, owners, found, scores,
        )  # fmt: skip
        turn = -(-TURN // USERS) * USERS
        share_out(lambda first, last: _search(first, last, *arrays), len(users), turn)
        return found, scores


def _lengths(vectors: Table) -> Table:
    lengths: Table = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return lengths


@njit(cache=True, nogil=True)
def _search(
    first: Any, last: Any, panel: Any, items: Any, rows: Any, longest: Any, users: Any,
    lengths: Any, indptr: Any, seen: Any, owners: Any, found: Any, scores: Any,
) -> None:  # fmt: skip
    """Fill the lists of users first..last, `first` a multiple of USERS."""
    out, bounds = np.empty((USERS, BLOCK), np.float32), np.empty(USERS, np.float32)
    for start in range(0, len(items), panel):
        for group in range(first, last, USERS):
            count, farthest = min(USERS, last - group), np.float32(0)
            for u in range(USERS):  # the padding of the last group never reaches its bound
                bounds[u] = scores[group + u, 0] if u < count else np.float32(np.inf)
                farthest = max(farthest, lengths[group + u] * (1 + ROUNDING))
            for block in range(start, min(start + panel, len(items))):
                # Lists are heaps, their last place first. No later item has a longer vector.
                if farthest * longest[block] < bounds.min():
                    break
                if not _any_reaches(USERS, users, group, items, block, bounds, out):
                    continue
                place = block * BLOCK
                for u in range(count):
                    b = group + u
                    owned = seen[indptr[owners[b]] : indptr[owners[b] + 1]]
                    for i in range(min(BLOCK, len(rows) - place)):
                        score, item = out[u, i], rows[place + i]
                        if score < bounds[u] or not _after(scores[b, 0], found[b, 0], score, item):
                            continue
                        if not has(owned, item):
                            _replace_last(scores[b], found[b], score, item)
                            bounds[u] = scores[b, 0]
    for b in range(first, last):
        _sort(scores[b], found[b])


@njit(cache=True, nogil=True)
def _after(score: Any, item: Any, other: Any, other_item: Any) -> Any:
    """Whether an item comes after another in a list."""
    return score < other or (score == other and item > other_item)


@njit(cache=True, nogil=True)
def _replace_last(scores: Any, found: Any, score: Any, item: Any) -> None:
    """Put an item in the place of the last one of a list, which is at the root of the heap."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= len(scores):
            break
        if child + 1 < len(scores) and _after(
            scores[child + 1], found[child + 1], scores[child], found[child]
        ):
            child += 1
        if not _after(scores[child], found[child], score, item):
            break
        scores[place], found[place] = scores[child], found[child]
        place = child
    scores[place], found[place] = score, item


@njit(cache=True, nogil=True)
def _sort(scores: Any, found: Any) -> None:
    """Turn a heap into a list, the best first."""
    for end in range(len(scores) - 1, 0, -1):
        score, item = scores[end], found[end]
        scores[end], found[end] = scores[0], found[0]
        _replace_last(scores[:end], found[:end], score, item)


@intrinsic(prefer_literal=True)
def _any_reaches(
    typing: Any, count: Any, users: Any, user: Any, items: Any, block: Any, bounds: Any, out: Any
) -> Any:
    """Whether one of `count` users, from row `user` on, has a score that reaches their bound in a
    block of items; if so, out[u] are the scores of user u."""
    signature = types.boolean(count, users, user, items, block, bounds, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = VectorCode(context, builder, types.float32, signature, arguments)
        return _products(code, signature.args[0].literal_value, arguments[2], arguments[4])

    return signature, generate


def _products(code: VectorCode, count: int, user: Any, block: Any) -> Any:
    builder = code.builder
    users, items, bounds, out = (code.table(n) for n in (1, 3, 5, 6))
    dim = builder.extract_value(users.shape, 1)
    rows = [users.at(builder.add(user, INDEX(u))) for u in range(count)]
    totals = [[code.slot(code.vector) for _ in range(VECTORS)] for _ in range(count)]
    for of_user in totals:
        for total in of_user:
            builder.store(code.zero, total)

    def address(data: Any, place: Any, n: int) -> Any:
        at = builder.gep(data, [builder.add(place, INDEX(n * LANES))])
        return builder.bitcast(at, code.vector.as_pointer())

    first = builder.mul(builder.mul(block, dim), INDEX(BLOCK))
    with code.loop(INDEX(0), dim) as d:
        place = builder.add(first, builder.mul(d, INDEX(BLOCK)))
        of_items = [builder.load(address(items.data, place, n), align=64) for n in range(VECTORS)]
        for row, of_user in zip(rows, totals, strict=True):
            theirs = code.splat(builder.load(builder.gep(row, [d])))
            for total, values in zip(of_user, of_items, strict=True):
                # One instruction where there is one. The order of the sum stays as it is.
                product = builder.fmul(theirs, values, flags=("contract",))
                more = builder.fadd(builder.load(total), product, flags=("contract",))
                builder.store(more, total)
    reached = None
    for u, of_user in enumerate(totals):
        bound = code.splat(builder.load(builder.gep(bounds.data, [INDEX(u)])))
        for total in of_user:
            these = builder.fcmp_ordered(">=", builder.load(total), bound)
            reached = these if reached is None else builder.or_(reached, these)
    lanes = ir.IntType(LANES)
    found = builder.icmp_unsigned("!=", builder.bitcast(reached, lanes), lanes(0))
    with builder.if_then(found, likely=False):
        for u, of_user in enumerate(totals):
            for n, total in enumerate(of_user):
                builder.store(builder.load(total), address(out.data, INDEX(u * BLOCK), n), align=4)
    return found
