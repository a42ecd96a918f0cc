"""A model in other programs' formats: finished lists, embeddings, an HNSW index, ONNX."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ltocf.errors import ConfigError
from ltocf.recommend.bulk import recommend_all, similar_all
from ltocf.recommend.onnx_scoring import INSTEAD, history_graph, user_graph
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.tables import names_apart
from ltocf.scorers.scorer import Scores, Vectors
from ltocf.storage.files import new_directory

MARKER = "export.json"
LINKS, BUILD_WIDTH, SEARCH_WIDTH = 32, 200, 200  # M, ef_construction and ef of HNSW
MEASURED_USERS, MEASURED_K = 1000, 20
Report = dict[str, Any]


@dataclass(frozen=True, eq=False)
class ExportJob:
    """What is exported, and where to."""

    recommender: Recommender
    directory: Path
    k: int  # of lists and neighbours
    kind: str  # of their files: .parquet or .csv

    @cached_property
    def vectors(self) -> tuple[Scores, Scores]:
        """Vectors of users and items whose inner products are the scores."""
        return vectors_of(self.recommender).with_bias()


def export(
    recommender: Recommender,
    output: str | Path,
    formats: Sequence[str] = ("parquet",),
    *,
    k: int = 10,
    csv: bool = False,
    overwrite: bool = False,
) -> Report:
    """Write the formats into one directory, whole or not at all, with export.json about them.

    lists       lists.parquet: `recommend` of every user, k items each
    neighbours  neighbours.parquet: `similar_items` of every item, k each
    parquet     users.parquet and items.parquet: id, vector, and an item's display columns; if the
                scores have a part for popularity, that is the last dimension, where users have 1
    hnsw        items.hnsw for inner products, its labels the rows of items.parquet
    states      user_states.parquet and item_states.parquet, of LT-OCF: id and a column of vectors
                for each time that the ODE is read at; report["states"] has the times, and the
                weights by which they add up to the vectors of users.parquet
    onnx        users.onnx (user rows -> scores) and, where the model can, histories.onnx
                (rows of histories, as in histories.py -> scores); the columns of scores are the
                rows of items.parquet; the metadata hold the ids of rows and columns as JSON

    Lists and neighbours there are of every model, as CSV if `csv`; embeddings and an index of a
    model of vectors, and histories.onnx also of linear models and of their blends.
    """
    for name in formats:
        if name not in FORMATS:
            raise ConfigError(f"unknown format {name!r}; choose one of: {', '.join(FORMATS)}")
    wanted = dict.fromkeys(formats)
    if wanted.keys() & OF_VECTORS:
        vectors_of(recommender)  # before anything is written
    if wanted.keys() & {"hnsw", "onnx"} and recommender.scorer.vectors() is not None:
        wanted = dict.fromkeys(["parquet", *formats])  # the ids are exported with them
    with new_directory(output, marker=MARKER, overwrite=overwrite) as temporary:
        job = ExportJob(recommender, temporary, k, ".csv" if csv else ".parquet")
        report: Report = {"model": recommender.config.model_name}
        for name in wanted:
            report[name] = FORMATS[name](job)
        (temporary / MARKER).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


def vectors_of(recommender: Recommender) -> Vectors:
    vectors = recommender.scorer.vectors()
    if vectors is None:
        raise ConfigError(f"{recommender.config.model_name} has no embeddings to export; {INSTEAD}")
    return vectors


def _export_lists(job: ExportJob) -> Report:
    written = recommend_all(job.recommender, job.directory / f"lists{job.kind}", job.k)
    return {"users": written.users, "rows": written.rows}


def _export_neighbours(job: ExportJob) -> Report:
    written = similar_all(job.recommender, job.directory / f"neighbours{job.kind}", job.k)
    return {"items": written.users, "rows": written.rows}


def _export_parquet(job: ExportJob) -> Report:
    seen, names = job.recommender.fitted.seen, job.recommender.dataset.item_names
    of_users, of_items = job.vectors
    users = _with_vectors(seen.user_ids.ids, of_users)
    items = _with_vectors(seen.item_ids.ids, of_items)
    if names is not None:
        items = items.hstack(names.rename(names_apart(names.columns, {"id", "vector"})))
    users.write_parquet(job.directory / "users.parquet")
    items.write_parquet(job.directory / "items.parquet")
    return {"users": users.height, "items": items.height, "dim": of_items.shape[1]}


def _with_vectors(ids: pl.Series, vectors: Scores) -> pl.DataFrame:
    return pl.DataFrame([ids, _vector_column("vector", vectors)])


def _vector_column(name: str, vectors: Scores) -> pl.Series:
    return pl.Series(name, vectors, dtype=pl.Array(pl.Float32, vectors.shape[1]))


def _export_states(job: ExportJob) -> Report:
    """E(t), the embeddings at each time, in the columns state_0, state_1, ..."""
    model, seen = job.recommender.model, job.recommender.fitted.seen
    states = model.states()
    halves = [model.graph.split(state.vectors) for state in states]
    for side, ids in enumerate((seen.user_ids.ids, seen.item_ids.ids)):
        columns = [
            _vector_column(f"state_{place}", half[side].numpy())
            for place, half in enumerate(halves)
        ]
        name = ("user_states", "item_states")[side]
        pl.DataFrame([ids, *columns]).write_parquet(job.directory / f"{name}.parquet")
    return {
        "times": [state.time for state in states],
        "weights": [state.weight for state in states],
    }


def _export_hnsw(job: ExportJob) -> Report:
    """Approximate search for the largest inner products, and how often it finds the true ones."""
    try:
        import hnswlib
    except ImportError:
        raise ConfigError("an HNSW index needs hnswlib: pip install 'ltocf[ann]'") from None
    (users, items), file = job.vectors, job.directory / "items.hnsw"
    started = time.perf_counter()
    index = hnswlib.Index(space="ip", dim=items.shape[1])
    index.init_index(len(items), M=LINKS, ef_construction=BUILD_WIDTH, random_seed=0)
    index.add_items(items, np.arange(len(items)))
    index.set_ef(min(SEARCH_WIDTH, len(items)))
    seconds = time.perf_counter() - started
    index.save_index(str(file))
    if file.stat().st_size != index.index_file_size():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # hnswlib does not say so itself
    measured = _measure(index, users, items)
    settings = {"space": "ip", "M": LINKS, "ef_construction": BUILD_WIDTH, "ef": SEARCH_WIDTH}
    return settings | {"build_seconds": seconds} | measured


def _measure(index: Any, users: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> Report:
    """The share of the exact top k that the index finds, and the milliseconds per user of both
    searches."""
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


def _export_onnx(job: ExportJob) -> Report:
    seen, scorer = job.recommender.fitted.seen, job.recommender.scorer
    items = {"item_ids": seen.item_ids.ids.to_list()}
    graphs, vectors = {}, scorer.vectors()
    if vectors is not None:
        users = {"user_ids": seen.user_ids.ids.to_list()}
        graphs["users"] = user_graph(vectors, users | items)
    histories = history_graph(scorer, seen.n_items, items)
    if histories is not None:
        graphs["histories"] = histories
    if not graphs:
        raise ConfigError(
            f"{job.recommender.config.model_name} cannot be written as a product of matrices, so "
            f"it has no ONNX file; {INSTEAD}"
        )
    for name, serialised in graphs.items():
        (job.directory / f"{name}.onnx").write_bytes(serialised)
    return {"graphs": list(graphs)}


FORMATS: dict[str, Callable[[ExportJob], Report]] = {
    "lists": _export_lists,
    "neighbours": _export_neighbours,
    "parquet": _export_parquet,
    "states": _export_states,
    "hnsw": _export_hnsw,
    "onnx": _export_onnx,
}
OF_VECTORS = {"parquet", "hnsw"}
