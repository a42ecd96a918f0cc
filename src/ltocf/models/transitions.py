"""Transitions: what tends to follow what, counted with a decay. For logs with an order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Interactions
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.kernels.sparse import keep_largest, take_touched, touch
from ltocf.models.base import ModelConfig
from ltocf.models.itemitem import ItemItemModel, inverse_powers, stack

CHUNK = 256  # items counted by one task


class TransitionsConfig(ModelConfig, frozen=True):
    window: int = Field(19, ge=1)  # how many items later still counts as following
    decay: float = Field(5.0, gt=0)  # items until a follower counts 1/e of the next one
    backward: float = Field(0.5, ge=0)  # what coming before counts, where coming after counts 1
    from_power: float = Field(0.4, ge=0)  # a: of an item's own transitions, which it is divided by
    to_power: float = Field(0.2, ge=0)  # b: of the transitions to an item, likewise
    memory: float = Field(3.0, gt=0)  # items later until one of a history counts 1/e of the last
    neighbours: int = Field(500, ge=1)  # followers to keep of each item


class Transitions(ItemItemModel):
    """`C[i, j] = sum over users of exp(-(g - 1) / decay)`, j being g items after i, plus `backward`
    times that for j before i; `W = diag(rows^-a) C diag(columns^-b)` by the sums of its rows and
    columns; an item of a history counts exp(-age / memory), age being how many came later.

    Items of the same moment count as if either had come first, half each. Without times, all items
    of a user count as if they were of the same moment. Memory: the pairs, and 8 bytes for each
    follower kept; time: pairs times window.
    """

    Config = TransitionsConfig
    config: TransitionsConfig

    def __init__(self, graph: BipartiteGraph, config: TransitionsConfig) -> None:
        super().__init__(graph, config)
        self.history_weights = HistoryWeights(train=graph.interactions, memory=config.memory)

    def weights(self) -> csr_array:
        config, lines = self.config, Lines.of(self.graph.interactions)
        gaps = np.exp(-np.arange(config.window) / config.decay)
        gaps = np.concatenate([[(1 + config.backward) / 2], gaps]).astype(np.float32)
        counting = (*lines, gaps, np.float32(config.backward), config.window)
        n_items = self.graph.n_items
        out_of, into = np.zeros(n_items), np.zeros(n_items)
        _sum_transitions(*counting, out_of, into)
        scales = (
            inverse_powers(out_of, config.from_power).astype(np.float32),
            inverse_powers(into, config.to_power).astype(np.float32),
        )

        def count(start: int) -> csr_array:
            stop = min(start + CHUNK, n_items)
            found = _count_transitions(start, stop, *counting, *scales, config.neighbours)
            return csr_array(found, shape=(stop - start, n_items))

        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            return stack(pool.map(count, range(0, n_items, CHUNK)))


class Lines(NamedTuple):
    """Everybody's items in the order of time, one user after another."""

    items: NDArray[np.int32]  # (n,)
    ages: NDArray[np.int64]  # (n,) how many of the same user's came later
    starts: NDArray[np.int64]  # (n,) where the user's line begins
    ends: NDArray[np.int64]  # (n,) and ends
    item_indptr: NDArray[np.int64]  # item i stands at places[item_indptr[i]:item_indptr[i + 1]]
    places: NDArray[np.int64]  # (n,)

    @classmethod
    def of(cls, train: Interactions) -> Lines:
        order = np.arange(len(train))
        ages = np.zeros(len(train), np.int64)
        if train.timestamps is not None:
            order = np.lexsort((train.timestamps, train.users))
            ages = train.later_counts[order]
        items, users = train.items[order], train.users
        indptr = np.concatenate([[0], np.cumsum(train.item_degrees)])
        places = np.argsort(items, kind="stable")
        return cls(items, ages, train.indptr[users], train.indptr[users + 1], indptr, places)


@numba.njit(nogil=True, cache=True)
def _weight(gap: Any, gaps: Any, backward: Any) -> Any:
    """Of an item that comes `gap` items later, which may be below zero."""
    if gap > 0:
        return gaps[gap]
    return backward * gaps[-gap] if gap < 0 else gaps[0]


@numba.njit(nogil=True, cache=True)
def _sum_transitions(
    items: Any, ages: Any, starts: Any, ends: Any, item_indptr: Any, places: Any,
    gaps: Any, backward: Any, window: Any, out_of: Any, into: Any,
) -> None:  # fmt: skip
    """The sums of the rows and of the columns of C."""
    for p in range(len(items)):
        for q in range(max(starts[p], p - window), min(ends[p], p + window + 1)):
            gap = ages[p] - ages[q]
            if q != p and abs(gap) <= window:
                weight = _weight(gap, gaps, backward)
                out_of[items[p]] += weight
                into[items[q]] += weight


@numba.njit(nogil=True, cache=True)
def _count_transitions(
    start: Any, stop: Any,
    items: Any, ages: Any, starts: Any, ends: Any, item_indptr: Any, places: Any,
    gaps: Any, backward: Any, window: Any, from_scale: Any, to_scale: Any, keep: Any,
) -> Any:  # fmt: skip
    """Values, indices and indptr of some rows of W, the largest weights of each."""
    n_items = len(item_indptr) - 1
    row, touched = np.zeros(n_items, np.float32), np.empty(n_items, np.int32)
    found, scratch = np.empty(n_items, np.float32), np.empty(n_items, np.float32)
    bits = np.zeros(n_items // 64 + 1, np.uint64)
    words = np.zeros(len(bits) // 64 + 1, np.uint64)
    room = (stop - start) * min(keep, n_items)
    values, indices = np.empty(room, np.float32), np.empty(room, np.int32)
    indptr = np.zeros(stop - start + 1, np.int64)
    for item in range(start, stop):
        for place in range(item_indptr[item], item_indptr[item + 1]):
            p = places[place]
            for q in range(max(starts[p], p - window), min(ends[p], p + window + 1)):
                gap = ages[p] - ages[q]
                if q != p and abs(gap) <= window:
                    other = items[q]
                    touch(bits, words, other)
                    row[other] += _weight(gap, gaps, backward) * from_scale[item] * to_scale[other]
        count = take_touched(bits, words, touched)
        for place in range(count):
            found[place] = row[touched[place]]
            row[touched[place]] = 0
        first = indptr[item - start]
        kept = slice(first, first + min(count, keep))
        keep_largest(found[:count], touched[:count], scratch, values[kept], indices[kept])
        indptr[item - start + 1] = kept.stop
    used = indptr[stop - start]
    return values[:used].copy(), indices[:used].copy(), indptr
