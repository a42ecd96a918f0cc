"""What a user would try instead, beside ours: one run, equal threads, a process for each.

    python -m benchmarks.peers --data gowalla $LTOCF_DATA/ml-1m city-1000000 --json
    python -m benchmarks.peers --data gowalla --peers "implicit ALS" --keep peers.json

Everything has its default settings; LightGCN is given as many whole epochs as begin within
`--seconds`. `fit` is from pairs in memory to a fitted model; `lists` are 20 unseen items for
everybody; `first list` is a new process that loads what was saved and answers for one user; memory
is the most that fitting and listing held, the pairs included. With `--keep` results are added to a
file one by one, so that a run can be continued; `benchmarks.peers_page` makes tables and a picture
of it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, load_npz, save_npz

K, FACTORS = 20, 64
Lists = Callable[[NDArray[np.int32]], NDArray[np.integer[Any]]]  # of users' rows
OURS = ("ease", "itemknn", "gfcf", "ials", "ltocf")
IMPLICIT = ("ALS", "BPR", "BM25", "cosine")
PEERS = (*(f"ltocf {name}" for name in OURS), *(f"implicit {name}" for name in IMPLICIT))
PEERS = (*PEERS, "LightGCN on torch.sparse", "EASE in NumPy")


def matrix_of(pairs: Any) -> csr_matrix:
    ones = np.ones(len(pairs), dtype=np.float32)
    return csr_matrix((ones, pairs.items, pairs.indptr), shape=(pairs.n_users, pairs.n_items))


def best(scores: NDArray[np.float32], seen: csr_matrix) -> NDArray[np.int64]:
    """The usual top-k in NumPy."""
    scores[seen.nonzero()] = -np.inf
    top = np.argpartition(-scores, K, axis=1)[:, :K]
    order = np.argsort(-np.take_along_axis(scores, top, 1), axis=1)
    return np.take_along_axis(top, order, 1)


def in_tiles(score: Callable[[Any], NDArray[np.float32]], seen: csr_matrix) -> Lists:
    def lists(users: NDArray[np.int32]) -> NDArray[np.int64]:
        tiles = np.array_split(users, -(-len(users) // 512))
        return np.concatenate([best(score(rows), seen[rows]) for rows in tiles])

    return lists


def fit_ease(matrix: csr_matrix, l2: float = 500.0) -> Any:
    gram = (matrix.T @ matrix).toarray()
    gram[np.diag_indices_from(gram)] += l2
    inverse = np.linalg.inv(gram)
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return weights


def fit_lightgcn(matrix: csr_matrix, seconds: float, layers: int = 3, batch: int = 8192) -> Any:
    """Users' and items' vectors: BPR with one random negative, Adam, one propagation a batch."""
    import torch
    import torch.nn.functional as F
    from scipy.sparse import bmat, diags

    torch.manual_seed(0)
    n_users, n_items = matrix.shape
    both = bmat([[None, matrix], [matrix.T, None]]).tocsr()
    root = diags(1 / np.sqrt(np.maximum(both.sum(1).A1, 1)))
    A = (root @ both @ root).tocoo()
    A = torch.sparse_coo_tensor(np.stack([A.row, A.col]), A.data, A.shape).float().coalesce()
    E = torch.nn.Parameter(0.1 * torch.randn(n_users + n_items, FACTORS))
    adam = torch.optim.Adam([E], lr=1e-2)
    pairs = matrix.tocoo()
    users, items = torch.from_numpy(pairs.row).long(), torch.from_numpy(pairs.col).long()

    def final() -> torch.Tensor:
        states = [E]
        for _ in range(layers):
            states.append(torch.sparse.mm(A, states[-1]))
        return torch.stack(states).mean(0)

    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        for rows in torch.randperm(len(users)).split(batch):
            table, u = final(), users[rows]
            near, far = items[rows], torch.randint(n_items, (len(rows),))
            difference = table[n_users + near] - table[n_users + far]
            norms = E[u].square() + E[n_users + near].square() + E[n_users + far].square()
            loss = F.softplus(-(table[u] * difference).sum(1)).mean() + 1e-4 * norms.sum(1).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
    with torch.no_grad():
        return final().split([n_users, n_items])


def implicit_model(name: str) -> Any:
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from implicit.nearest_neighbours import BM25Recommender, CosineRecommender

    if name in ("BM25", "cosine"):
        return {"BM25": BM25Recommender, "cosine": CosineRecommender}[name](num_threads=threads())
    kind = {"ALS": AlternatingLeastSquares, "BPR": BayesianPersonalizedRanking}[name]
    return kind(factors=FACTORS, random_state=0, num_threads=threads())


def threads() -> int:
    return int(os.environ["OMP_NUM_THREADS"])


def load_libraries(peer: str) -> None:
    """Before the clock starts: that belongs to the first list."""
    ours = ("ltocf.ranking.kernels", "ltocf.recommend.recommender", "ltocf.training.fitting")
    needed = {"ltocf": ours, "implicit": ("implicit.cpu.als",), "LightGCN": ("torch",)}
    for name in needed.get(peer.split()[0], ()):
        import_module(name)


def fit(peer: str, dataset: Any, matrix: csr_matrix, seconds: float) -> tuple[Lists, Any]:
    """What lists, and what saves."""
    library, _, name = peer.partition(" ")
    if library == "ltocf":
        from ltocf.ranking.top_k import top_k
        from ltocf.recommend.recommender import Recommender

        ours = Recommender(name).fit(dataset)
        seen, n = dataset.split.seen, dataset.split.train.n_items
        return lambda users: top_k(ours.scorer, users, K, n_items=n, seen=seen).items, ours.save
    if library == "implicit":
        model = implicit_model(name)
        model.fit(matrix, show_progress=False)

        def save(folder: Path) -> None:
            folder.mkdir()
            model.save(str(folder / "model.npz"))
            save_npz(folder / "seen.npz", matrix, compressed=False)

        return lambda users: model.recommend(users, matrix[users], N=K)[0], save
    arrays = dict[str, Any]()
    if library == "EASE":
        weights = arrays["weights"] = fit_ease(matrix)
        lists = in_tiles(lambda rows: matrix[rows] @ weights, matrix)
    else:
        vectors = fit_lightgcn(matrix, seconds)
        users, items = (table.numpy() for table in vectors)
        arrays |= {"users": users, "items": items}
        lists = in_tiles(lambda rows: users[rows] @ items.T, matrix)

    def save_arrays(folder: Path) -> None:
        folder.mkdir()
        np.savez(folder / "model.npz", **arrays)
        save_npz(folder / "seen.npz", matrix, compressed=False)

    return lists, save_arrays


def measure(peer: str, data: str, folder: Path, seconds: float) -> dict[str, Any]:
    from benchmarks.data import read_data
    from ltocf.ranking.metrics import find_hits, list_metrics, testable_users

    dataset = read_data(data)
    split = dataset.split
    matrix = matrix_of(split.seen)
    load_libraries(peer)
    started = time.perf_counter(), time.process_time()
    lists, save = fit(peer, dataset, matrix, seconds)
    fitted = time.perf_counter(), time.process_time()
    everybody = np.arange(matrix.shape[0], dtype=np.int32)
    ranked = np.asarray(lists(everybody), dtype=np.int32)
    listed = time.perf_counter(), time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    users = testable_users(split.test)
    hits = find_hits(ranked[users], users, split.test)
    save(folder)
    return {
        "fit_seconds": fitted[0] - started[0],
        "fit_processor_seconds": fitted[1] - started[1],
        "lists_seconds": listed[0] - fitted[0],
        "lists_processor_seconds": listed[1] - fitted[1],
        "peak_mib": memory,
        "disk_mib": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 2**20,
        "recall@20": float(
            list_metrics(hits, split.test.user_degrees[users], (K,))["recall@20"].mean()
        ),
    }


def first_list(peer: str, folder: Path) -> None:
    """Load what was saved and answer for the first user."""
    library, _, name = peer.partition(" ")
    if library == "ltocf":
        from ltocf.recommend.recommender import Recommender

        ours = Recommender.load(folder)
        ours.recommend(ours.fitted.seen.user_ids[np.zeros(1, np.int32)][0], K)
        return
    seen = load_npz(folder / "seen.npz")
    if library == "implicit":
        model = type(implicit_model(name)).load(str(folder / "model.npz"))
        model.recommend(0, seen[0], N=K)
        return
    arrays, row = np.load(folder / "model.npz"), np.zeros(1, np.int32)
    scores = (
        seen[row] @ arrays["weights"]
        if library == "EASE"
        else arrays["users"][row] @ arrays["items"].T
    )
    best(scores, seen[row])


def run(peer: str, data: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit, list and save in one process, and a first list in another."""
    environment = os.environ | {
        "OMP_NUM_THREADS": str(arguments.threads),
        "OPENBLAS_NUM_THREADS": "1" if peer.startswith("implicit") else str(arguments.threads),
    }
    command = [sys.executable, "-m", "benchmarks.peers", "--peer", peer, "--data", data]
    command += ["--seconds", str(arguments.seconds)]
    with tempfile.TemporaryDirectory() as parent:
        folder = str(Path(parent) / "model")
        environment["XDG_CACHE_HOME"] = parent  # no singular vectors from an earlier run
        done = subprocess.run(
            [*command, "--folder", folder], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            return {"error": done.stderr.strip().splitlines()[-1]}
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        for _ in range(2):  # the first one fills the file cache
            started, before = time.perf_counter(), children_seconds()
            subprocess.run([*command, "--folder", folder, "--first"], env=environment, check=True)
            result["first_list_seconds"] = time.perf_counter() - started
            result["first_list_processor_seconds"] = children_seconds() - before
    return result


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=["town"], help="names, directories, city-N")
    parser.add_argument("--peers", nargs="+", default=PEERS, choices=PEERS, metavar="PEER")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=240, help="of LightGCN; default: 240")
    parser.add_argument("--keep", type=Path, help="add to this file")
    parser.add_argument("--json", action="store_true", help="one line")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first:
        first_list(arguments.peer, arguments.folder)
        return
    if arguments.peer:
        data, folder = arguments.data[0], arguments.folder
        print(json.dumps(measure(arguments.peer, data, folder, arguments.seconds)))
        return
    from benchmarks.measure import machine  # not above: a first list of others needs none of ours

    report: dict[str, Any] = {"data": {}}
    if arguments.keep and arguments.keep.exists():
        report = json.loads(arguments.keep.read_text())
    report |= {"machine": machine(), "threads": arguments.threads}
    for data in arguments.data:
        found = report["data"].setdefault(Path(data).name, {})
        for peer in arguments.peers:
            found[peer] = run(peer, data, arguments) | {"date": date.today().isoformat()}
            print(data, peer, found[peer], file=sys.stderr)
            if arguments.keep:
                arguments.keep.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
