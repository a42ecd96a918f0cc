"""A model in other programs' formats: embeddings as Parquet, an HNSW index, scoring as ONNX."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from torch import Tensor

from ltocf.data.histories import HistoryWeights
from ltocf.errors import ConfigError
from ltocf.files import new_directory
from ltocf.models.scorer import Vectors
from ltocf.recommend.onnx_scoring import history_graph, user_graph
from ltocf.recommend.recommender import Recommender

MARKER = "export.json"
LINKS, BUILD_WIDTH, SEARCH_WIDTH = 32, 200, 200  # M, ef_construction and ef of HNSW
MEASURED_USERS, MEASURED_K = 1000, 20
Report = dict[str, Any]


def export(
    recommender: Recommender,
    output: Path,
    formats: Sequence[str] = ("parquet",),
    *,
    overwrite: bool = False,
) -> Report:
    """Write the formats into one directory, whole or not at all, with export.json about them.

    parquet  users.parquet and items.parquet: id, vector, and an item's display columns
    hnsw     items.hnsw for inner products, its labels the rows of items.parquet
    onnx     users.onnx (user rows -> scores) and, where the model can, histories.onnx
             (rows of histories, as in histories.py -> scores); the columns of scores are the rows
             of items.parquet; the metadata hold the ids of rows and columns as JSON
    """
    for name in formats:
        if name not in FORMATS:
            raise ConfigError(f"unknown format {name!r}; choose one of: {', '.join(FORMATS)}")
    vectors = recommender.scorer.vectors()
    if vectors is None:
        raise ConfigError(
            f"{recommender.config.model_name} has no embeddings to export; "
            "use a model of embeddings, such as ltocf, lightgcn or mf"
        )
    wanted = dict.fromkeys(["parquet", *formats])  # the ids go with everything
    with new_directory(output, marker=MARKER, overwrite=overwrite) as temporary:
        report: Report = {"model": recommender.config.model_name}
        for name in wanted:
            report[name] = FORMATS[name](recommender, vectors, temporary)
        (temporary / MARKER).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


def _export_parquet(recommender: Recommender, vectors: Vectors, directory: Path) -> Report:
    seen, names = recommender.fitted.seen, recommender.dataset.item_names
    users = _with_vectors(seen.user_ids.ids, vectors.users)
    items = _with_vectors(seen.item_ids.ids, vectors.items)
    if names is not None:
        items = items.hstack(names.rename({"vector": "item_vector"}, strict=False))
    users.write_parquet(directory / "users.parquet")
    items.write_parquet(directory / "items.parquet")
    return {"users": users.height, "items": items.height, "dim": vectors.items.shape[1]}


def _with_vectors(ids: pl.Series, vectors: Tensor) -> pl.DataFrame:
    array = vectors.cpu().numpy()
    column = pl.Series("vector", array, dtype=pl.Array(pl.Float32, array.shape[1]))
    return pl.DataFrame([ids, column])


def _export_hnsw(recommender: Recommender, vectors: Vectors, directory: Path) -> Report:
    """Approximate search for the largest inner products, and how often it finds the true ones."""
    try:
        import hnswlib
    except ImportError:
        raise ConfigError("an HNSW index needs hnswlib: pip install 'ltocf[ann]'") from None
    items = vectors.items.cpu().numpy()
    started = time.perf_counter()
    index = hnswlib.Index(space="ip", dim=items.shape[1])
    index.init_index(len(items), M=LINKS, ef_construction=BUILD_WIDTH, random_seed=0)
    index.add_items(items, np.arange(len(items)))
    index.set_ef(min(SEARCH_WIDTH, len(items)))
    seconds = time.perf_counter() - started
    index.save_index(str(directory / "items.hnsw"))
    if (directory / "items.hnsw").stat().st_size != index.index_file_size():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # hnswlib does not say so itself
    measured = _measure(index, vectors.users.cpu().numpy(), items)
    settings = {"space": "ip", "M": LINKS, "ef_construction": BUILD_WIDTH, "ef": SEARCH_WIDTH}
    return settings | {"build_seconds": seconds} | measured


def _measure(index: Any, users: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> Report:
    """The share of the exact top k that the index finds, and the milliseconds a user of both."""
    k = min(MEASURED_K, len(items))
    rows = np.random.default_rng(0).permutation(len(users))[:MEASURED_USERS]
    queries, started = users[rows], time.perf_counter()
    exact = np.argpartition(-(queries @ items.T), k - 1, axis=1)[:, :k]
    between = time.perf_counter()
    found, _ = index.knn_query(queries, k)
    ended = time.perf_counter()
    hits = sum(len(np.intersect1d(a, b)) for a, b in zip(exact, found, strict=True))
    return {
        "k": k,
        "recall": hits / exact.size,
        "users_measured": len(rows),
        "exact_milliseconds": 1000 * (between - started) / len(rows),
        "index_milliseconds": 1000 * (ended - between) / len(rows),
    }


def _export_onnx(recommender: Recommender, vectors: Vectors, directory: Path) -> Report:
    seen = recommender.fitted.seen
    items = {"item_ids": seen.item_ids.ids.to_list()}
    graphs = {"users": user_graph(vectors, {"user_ids": seen.user_ids.ids.to_list()} | items)}
    if vectors.history is not None:
        recency = recommender.config.model_options.get("recency", 0.0)
        strengths = recommender.model.graph.interactions.item_strengths
        graphs["histories"] = history_graph(vectors, HistoryWeights(recency), strengths, items)
    for name, serialised in graphs.items():
        (directory / f"{name}.onnx").write_bytes(serialised)
    return {"graphs": list(graphs)}


FORMATS: dict[str, Callable[[Recommender, Vectors, Path], Report]] = {
    "parquet": _export_parquet,
    "hnsw": _export_hnsw,
    "onnx": _export_onnx,
}
