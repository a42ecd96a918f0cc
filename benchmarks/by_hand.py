"""What is written by hand against the library that does the same, in one run.

Singular vectors: our filtered subspace iteration, which takes columns in blocks through the graph's
kernels, against scipy.sparse.linalg.svds (ARPACK). Both find the leading vectors of the same
matrix; the residual |N^T N v - s^2 v| says how well.

Pairs on disk: `ltocf prepare` with its store of pairs, against the same job in polars' streaming
engine: read CSV, leave out low ratings, merge repeats, thin to a 5-core, number, split, write.
Each run is a process of its own, so that its peak memory is its own.

    python -m benchmarks.by_hand --data $LTOCF_DATA/gowalla --json
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchmarks.ingest import MINIMUM, RATIO, SEED, THRESHOLD, generate, ltocf

if TYPE_CHECKING:  # torch counts in the memory of a process that imports it
    from scipy.sparse import csr_array

    from ltocf.graph.bipartite import BipartiteGraph


def ours(graph: BipartiteGraph, rank: int) -> np.ndarray[Any, Any]:
    from ltocf.graph.spectrum import singular_vectors

    with tempfile.TemporaryDirectory() as cache:
        return singular_vectors(graph, rank, cache=Path(cache)).items.numpy()


def normalised(graph: BipartiteGraph) -> csr_array:
    """N. (n_users, n_items)"""
    from scipy.sparse import csr_array

    train = graph.interactions
    degrees = train.user_degrees[train.users] * train.item_degrees[train.items]
    shape = (train.n_users, train.n_items)
    return csr_array((degrees.astype(np.float32) ** -0.5, train.items, train.indptr), shape=shape)


def arpack(N: csr_array, rank: int) -> np.ndarray[Any, Any]:
    from scipy.sparse.linalg import svds

    # As exact as ours: a residual of 1e-3 in s^2.
    vectors: np.ndarray[Any, Any] = svds(N, rank, tol=1e-3, return_singular_vectors="vh")[2].T
    return vectors


def worst_residual(N: csr_array, vectors: np.ndarray[Any, Any]) -> float:
    image = N.T @ (N @ vectors)
    values = (vectors * image).sum(0) / (vectors**2).sum(0)
    return float(np.linalg.norm(image - vectors * values, axis=0).max())


def compare_spectra(data: str, rank: int, rounds: int) -> dict[str, Any]:
    from ltocf.data.sources.catalog import load_dataset
    from ltocf.graph.bipartite import BipartiteGraph

    graph = BipartiteGraph(load_dataset(data).split.train)
    N = normalised(graph)
    sides: dict[str, Callable[[], np.ndarray[Any, Any]]] = {
        "ours": lambda: ours(graph, rank),
        "svds": lambda: arpack(N, rank),
    }
    ours(graph, 8)  # compiles
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, find in sides.items():
            started = time.perf_counter(), time.process_time()
            vectors = find()
            run = _since(*started)
            runs[name].append(run | {"residual": worst_residual(N, vectors)})
    return _medians(runs, "svds") | {"rank": rank}


def streaming(log: Path, output: Path, rows: int) -> None:
    """The job of `benchmarks.ingest` in polars, whose streaming engine keeps little in memory."""
    output.mkdir()

    def write(frame: pl.LazyFrame, name: str) -> Path:
        frame.sink_parquet(output / name, engine="streaming")
        return output / name

    pairs = (
        pl.scan_csv(log)
        .filter(pl.col("rating") >= THRESHOLD)
        .group_by("user_id", "item_id")
        .agg(pl.col("timestamp").min())
    )
    kept = write(pairs, "kept-0.parquet")
    before, turn = -1, 0
    while (count := pl.scan_parquet(kept).select(pl.len()).collect().item()) != before:
        before = count
        for side in ("user_id", "item_id"):
            frame, turn = pl.scan_parquet(kept), turn + 1
            enough = frame.group_by(side).len().filter(pl.col("len") >= MINIMUM)
            kept = write(frame.join(enough, on=side, how="semi"), f"kept-{turn}.parquet")
    for side in ("user_id", "item_id"):
        ids = pl.scan_parquet(kept).select(side).unique().sort(side).with_row_index("row")
        write(ids, f"{side}.parquet")
    coded = pl.scan_parquet(kept)
    for side in ("user_id", "item_id"):
        table = pl.scan_parquet(output / f"{side}.parquet")
        coded = coded.join(table, on=side).drop(side).rename({"row": side})
    drawn = coded.with_columns(draw=pl.struct("user_id", "item_id").hash(SEED))
    share = pl.col("draw").rank("ordinal").over("user_id") / pl.len().over("user_id")
    split = write(drawn.with_columns(test=share > RATIO), "split.parquet")
    for name, part in (("train", ~pl.col("test")), ("test", pl.col("test"))):
        chosen = pl.scan_parquet(split).filter(part).sort("user_id", "item_id")
        write(chosen.select("user_id", "item_id", "timestamp"), f"{name}.parquet")


STORES = {"ours": ltocf, "polars": streaming}


def _in_own_process(side: str, log: Path, rows: int) -> dict[str, float]:
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_timed, (side, log, rows))


def _timed(side: str, log: Path, rows: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=log.parent) as folder:
        started = time.perf_counter(), time.process_time()
        STORES[side](log, Path(folder) / "out", rows)
        run = _since(*started)
    return run | {"peak_mb": _peak_mb()}


def _peak_mb() -> float:
    # The system's own account of a process starts with its parent's, this one with its program.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _since(started: float, processor: float) -> dict[str, float]:
    """Elapsed time, and that of all threads, which a busy machine disturbs less."""
    return {
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - processor,
    }


def _medians(runs: dict[str, list[dict[str, float]]], theirs: str) -> dict[str, Any]:
    """The median of each figure of each side, and how many times ours it is for the other."""
    report: dict[str, Any] = {
        side: {key: statistics.median(run[key] for run in done) for key in done[0]}
        for side, done in runs.items()
    }
    pairs = ((key, report[theirs][key], value) for key, value in report["ours"].items())
    ratios = {key: other / own for key, other, own in pairs if key != "residual"}
    return report | {"ratio": ratios.pop("seconds"), "ratios": ratios}


def compare_stores(rows: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        generate(log, Path(folder), rows)
        runs: dict[str, list[dict[str, float]]] = {side: [] for side in STORES}
        for _ in range(rounds):
            for side in STORES:
                runs[side].append(_in_own_process(side, log, rows))
    return _medians(runs, "polars") | {"rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--rank", type=int, default=256, help="default: 256")
    parser.add_argument(
        "--rows", type=int, default=4_000_000, help="of the log; default: 4 million"
    )
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--json", action="store_true", help="one line")
    options = parser.parse_args()
    import torch

    from benchmarks.measure import machine

    report = {
        "singular_vectors": compare_spectra(options.data, options.rank, options.rounds),
        "pairs_on_disk": compare_stores(options.rows, options.rounds),
        "threads": torch.get_num_threads(),
        "machine": machine(),
    }
    report["ratio"] = {
        name: part["ratio"] for name, part in report.items() if isinstance(part, dict)
    }
    print(json.dumps(report, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
