"""The leading singular vectors of the normalised interactions N, computed once for each data set.

N[u, i] = 1 / sqrt(deg u * deg i) is the upper right block of the graph's A. Its squared singular
values are the eigenvalues of the item graph P = N^T N and lie in [0, 1].
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ltocf.data.interactions import IdMap, Interactions
from ltocf.errors import DataError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.machine.threads import for_factorising
from ltocf.progress import Progress, silent
from ltocf.storage.cache import shrink, spectra_directory, touch
from ltocf.storage.files import replacing

COLUMNS = 64  # per product with the graph, so that its tables stay in the cache
SPARE, DEGREE, ROUNDS = 64, 8, 12
DENSE_SIDE = 700  # for matrices up to this side, LAPACK is as fast, and exact


class SingularVectors(NamedTuple):
    """N V = U diag(values); the largest value first."""

    values: Tensor  # (rank,) in float64
    items: Tensor  # V, (n_items, rank)

    def users(self, graph: BipartiteGraph) -> Tensor:
        """U, for values that are not zero. (n_users, rank)"""
        return half_product(graph, self.items)[0] / self.values.float()


def singular_vectors(
    graph: BipartiteGraph,
    rank: int,
    *,
    tolerance: float = 1e-3,
    cache: Path | None = None,
    progress: Progress = silent,
) -> SingularVectors:
    """The leading `rank` of them, or all where N has fewer. `tolerance` bounds |P v - s^2 v|.

    Kept under `cache` (the user's cache directory), named by the fingerprint of the data, the rank
    and the tolerance: vectors of another rank are other ones, within the tolerance, so they are not
    cut to size. Memory while computing: three tables of (n_items, rank + 64) floats.

    Items that nobody has touched have zeros, and change nothing of the others, to the last bit.
    """
    touched = np.flatnonzero(graph.interactions.item_degrees)
    if len(touched) < graph.n_items:
        smaller_graph = BipartiteGraph(_of_touched(graph.interactions, touched))
        values, rows = singular_vectors(
            smaller_graph, rank, tolerance=tolerance, cache=cache, progress=progress
        )
        items = torch.zeros(graph.n_items, rows.shape[1])
        items[touched] = rows
        return SingularVectors(values, items)
    smaller = min(graph.n_users, graph.n_items)
    rank = min(rank, smaller)
    if smaller <= max(DENSE_SIDE, 2 * rank):
        return _dense(graph, rank)
    directory = spectra_directory() if cache is None else cache
    name = f"{graph.interactions.fingerprint}-{rank}-{tolerance:g}.safetensors"
    found = _load(directory / name)
    if found is None:
        found = _filtered_subspace(graph, rank, tolerance, progress)
        _save(directory / name, found)
    return found


def _of_touched(train: Interactions, touched: NDArray[np.int64]) -> Interactions:
    """The same pairs on the touched items only, renumbered in their order."""
    place = np.zeros(train.n_items, np.int32)
    place[touched] = np.arange(len(touched), dtype=np.int32)
    ids = IdMap.range(len(touched))
    return replace(train, items=place[train.items], item_ids=ids, tags=None)


def half_product(
    graph: BipartiteGraph, X: Tensor, progress: Progress = silent
) -> tuple[Tensor, Tensor]:
    """(N X, N^T N X) for X of (n_items, any), some columns at a time."""
    users = torch.empty(graph.n_users, X.shape[1])
    items = torch.empty(graph.n_items, X.shape[1])
    for start in range(0, X.shape[1], COLUMNS):
        progress("singular vectors", start, X.shape[1])
        part = X[:, start : start + COLUMNS]
        columns = slice(start, start + part.shape[1])
        # Users see only items and items only users, so two products stay in their own blocks.
        once = graph @ torch.cat([torch.zeros(graph.n_users, part.shape[1]), part])
        users[:, columns] = once[: graph.n_users]
        items[:, columns] = (graph @ once)[graph.n_users :]
    return users, items


def _dense(graph: BipartiteGraph, rank: int) -> SingularVectors:
    train = graph.interactions
    N = torch.zeros(graph.n_users, graph.n_items, dtype=torch.float64)
    values = (train.user_strengths[train.users] * train.item_strengths[train.items]) ** -0.5
    if train.strengths is not None:
        values *= train.strengths
    N[train.users, train.items] = torch.from_numpy(values)
    with for_factorising():
        _, values, items = torch.linalg.svd(N, full_matrices=False)
    return SingularVectors(values[:rank], items[:rank].T.float().contiguous())


def _filtered_subspace(
    graph: BipartiteGraph, rank: int, tolerance: float, progress: Progress = silent
) -> SingularVectors:
    """Subspace iteration on P with a Chebyshev polynomial that is small below the wanted values.

    Each round damps [0, cut], cut being the smallest Ritz value of the round before, so that what
    lies above it grows by a factor that is exponential in the degree (Zhou and Saad, 2007).
    """
    generator = torch.Generator().manual_seed(0)
    columns = min(rank + SPARE, graph.n_users, graph.n_items)
    X = torch.randn(graph.n_items, columns, generator=generator)
    for _ in range(2):
        X = half_product(graph, X, progress)[1]
    X, values, residual = _rayleigh_ritz(graph, X, progress)
    for _ in range(ROUNDS):
        if residual[:rank].max() <= tolerance:
            break
        scale = 2 / float(values[-1])
        previous, X = X, scale * half_product(graph, X, progress)[1] - X
        for _ in range(DEGREE - 1):
            previous, X = X, 2 * (scale * half_product(graph, X, progress)[1] - X) - previous
        X, values, residual = _rayleigh_ritz(graph, X, progress)
    return SingularVectors(values[:rank].clamp(min=0).sqrt(), X[:, :rank].contiguous())


def _rayleigh_ritz(
    graph: BipartiteGraph, X: Tensor, progress: Progress
) -> tuple[Tensor, Tensor, Tensor]:
    """The best eigenvectors of P within the columns' span, their values and residual norms."""
    with for_factorising():
        X = torch.linalg.qr(X)[0]
    image = half_product(graph, X, progress)[1]
    inner = (X.T @ image).double()
    with for_factorising():
        values, rotation = torch.linalg.eigh((inner + inner.T) / 2)
    values, rotation = values.flip(0), rotation.flip(1).float()
    X, image = X @ rotation, image @ rotation
    return X, values, (image - X * values.float()).norm(dim=0)


def _load(path: Path) -> SingularVectors | None:
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as file:
            found = SingularVectors(file.get_tensor("values"), file.get_tensor("items"))
            digest = (file.metadata() or {}).get("digest")
    except (OSError, SafetensorError, ValueError):
        return None  # a damaged cache entry is computed again
    if digest != _digest(path.stem, found):
        return None
    touch(path)
    return found


def _save(path: Path, vectors: SingularVectors) -> None:
    """Save the vectors if possible; without a cache they would only be computed again."""
    try:
        with replacing(path) as temporary:
            save_file(vectors._asdict(), temporary, {"digest": _digest(path.stem, vectors)})
        shrink(path.parent)
    except (DataError, OSError):
        return


def _digest(name: str, vectors: SingularVectors) -> str:
    """A digest of the numbers and of what they stand for: a renamed file counts as damaged."""
    digest = hashlib.sha256(f"{name} {vectors.items.dtype} {tuple(vectors.items.shape)}".encode())
    for tensor in vectors:
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def powers(strengths: NDArray[np.float64], exponent: float) -> Tensor:
    """strength^exponent, and 0 for what nobody has. (n,)"""
    positive = np.where(strengths > 0, strengths, 1) ** exponent
    return torch.from_numpy(np.where(strengths > 0, positive, 0).astype(np.float32))
