"""Scores -> lists: masked top-k, the one place where it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray
from torch import Tensor

from ltocf.data.interactions import Interactions, Rows
from ltocf.errors import ConfigError

# A tile of scores: large enough for an efficient matrix product, small enough to stay cached.
TILE_BYTES = 32 * 2**20
# So many scores are ranked before another thread wakes up, which takes a busy machine milliseconds.
FEW = 2**20


class Ranked(NamedTuple):
    """Best first; ties go to the lower item row. Where a user has fewer candidates than k, the row
    ends in item -1 with score -inf."""

    items: Rows  # (n, k)
    scores: NDArray[np.float32]  # (n, k)


def length_of_list(k: int, n: int) -> int:
    """How many of n there are in a list of k: k, or all of them; only k < 1 is refused."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ConfigError(f"k = {k!r}: must be a whole number of at least 1")
    return min(int(k), n)


def top_k(
    scorer: Callable[[Rows], Tensor],
    users: Rows,
    k: int,
    *,
    n_items: int,
    seen: Interactions | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Ranked:
    """Each user's k best items that they have not `seen`. O(users * k) memory plus one tile."""
    parts = list(ranked_tiles(scorer, users, k, n_items=n_items, seen=seen, progress=progress))
    if not parts:
        return Ranked(np.empty((0, k), np.int32), np.empty((0, k), np.float32))
    items, scores = zip(*parts, strict=True)
    return Ranked(np.concatenate(items), np.concatenate(scores))


def tile_bytes(n_items: int) -> int:
    """The size of one tile of scores: at least 16 users, however many items there are."""
    return max(16, TILE_BYTES // (4 * n_items)) * 4 * n_items


def ranked_tiles(
    scorer: Callable[[Rows], Tensor],
    users: Rows,
    k: int,
    *,
    n_items: int,
    seen: Interactions | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Ranked]:
    """The same, a tile of users at a time."""
    tile = tile_bytes(n_items) // (4 * n_items)
    for start in range(0, len(users), tile):
        rows = users[start : start + tile]
        yield rank(scorer(rows), k, rows, seen)
        progress(start + len(rows))


def rank(scores: Tensor, k: int, users: Rows, seen: Interactions | None) -> Ranked:
    """Top k of each row of `scores` (len(users), n_items), which is overwritten where seen."""
    if seen is None:
        indptr, items = np.zeros(len(users) + 1, np.int64), np.empty(0, np.int32)
        rows = np.arange(len(users), dtype=np.int32)
    else:
        indptr, items, rows = seen.indptr, seen.items, users
    if scores.is_cuda:
        return _rank_on_gpu(scores, k, indptr, items, rows)
    out = Ranked(
        np.full((len(users), k), -1, np.int32), np.full((len(users), k), -np.inf, np.float32)
    )
    dense = scores.detach().to(torch.float32).contiguous().numpy()
    kernel = _rank_here if dense.size <= FEW else _rank_on_all_threads
    kernel(dense, indptr, items, rows, out.items, out.scores)
    return out


# Two functions, as Numba's cache takes one that is compiled both ways for the same.
@njit(cache=True)
def _rank_here(
    scores: Any, indptr: Any, seen: Any, rows: Any, out_items: Any, out_scores: Any
) -> None:
    for b in range(scores.shape[0]):
        owned = seen[indptr[rows[b]] : indptr[rows[b] + 1]]
        _mask_and_rank(scores[b], owned, out_items[b], out_scores[b])


@njit(cache=True, parallel=True)
def _rank_on_all_threads(
    scores: Any, indptr: Any, seen: Any, rows: Any, out_items: Any, out_scores: Any
) -> None:
    for b in prange(scores.shape[0]):
        owned = seen[indptr[rows[b]] : indptr[rows[b] + 1]]
        _mask_and_rank(scores[b], owned, out_items[b], out_scores[b])


@njit(cache=True)
def _mask_and_rank(row: Any, owned: Any, items: Any, best: Any) -> None:
    k, chunk = len(best), 64
    for item in owned:
        row[item] = -np.inf
    # Nearly every chunk has no score above the k-th best so far: one vectorised pass skips it.
    for start in range(0, row.shape[0], chunk):
        end = min(start + chunk, row.shape[0])
        above = 0
        for i in range(start, end):
            above += row[i] > best[k - 1]
        if above == 0:
            continue
        for i in range(start, end):
            score = row[i]
            if score > best[k - 1]:
                place = k - 1
                while place > 0 and best[place - 1] < score:
                    best[place] = best[place - 1]
                    items[place] = items[place - 1]
                    place -= 1
                best[place] = score
                items[place] = i


def _rank_on_gpu(
    scores: Tensor, k: int, indptr: NDArray[np.int64], seen: Rows, rows: Rows
) -> Ranked:
    counts = indptr[rows + 1] - indptr[rows]
    owners = np.repeat(np.arange(len(rows)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = seen[np.repeat(indptr[rows], counts) + within].astype(np.int64)
    where = (torch.from_numpy(owners), torch.from_numpy(columns))
    scores[where[0].to(scores.device), where[1].to(scores.device)] = -torch.inf
    # A stable sort keeps ties in item order, as on the CPU; topk does not promise any order.
    best, items = torch.sort(scores, dim=1, descending=True, stable=True)
    best_k = best[:, :k].float().cpu().numpy()
    items_k = items[:, :k].int().cpu().numpy()
    items_k[np.isneginf(best_k)] = -1
    missing = max(0, k - best_k.shape[1])
    pad = ((0, 0), (0, missing))
    return Ranked(
        np.pad(items_k, pad, constant_values=-1), np.pad(best_k, pad, constant_values=-np.inf)
    )
