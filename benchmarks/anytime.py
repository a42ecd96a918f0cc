"""How good is what a search has after 10, 30, 100, 300 and 1,000 seconds?

python -m benchmarks.anytime --data gowalla --json
python -m benchmarks.anytime --data gowalla yelp2018 $LTOCF_DATA/ml-1m $LTOCF_DATA/beauty town \
    --picture docs/images/anytime.svg --json

One run of `ltocf train DATA --budget LAST` is watched, and the version in use at each mark is kept
and tested afterwards, so that no choice has seen the test pairs. Beside it stand the models of
`implicit` with the settings that its users take, each from the second on at which it is fitted, on
as many threads: at a mark the best of those that are ready counts. On beauty everybody's last item
is test, and lists are of ten. `ratio` is the smallest, over data and marks, of ours to theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from benchmarks.beauty import next_items
from benchmarks.measure import machine
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.sources.catalog import load_dataset
from ltocf.ranking.metrics import evaluate
from ltocf.recommend.recommender import Recommender
from ltocf.runs.versions import MARKER, in_use, version_path
from ltocf.storage.files import replacing

MARKS = (10.0, 30.0, 100.0, 300.0, 1000.0)
LOOK = 0.1  # seconds


def main() -> None:
    arguments = parse()
    found = {}
    for data in arguments.data:
        with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
            found[Path(data).name] = measured(data, Path(folder), arguments)
    ratios = [row["ratio"] for of_data in found.values() for row in of_data["marks"]]
    ratio = min((ratio for ratio in ratios if ratio is not None), default=None)
    if arguments.picture:
        draw(found, Path(arguments.picture))
    result = {"machine": machine(), "threads": arguments.threads, "ratio": ratio, "data": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def measured(data: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    dataset, k, name = loaded(data, folder)
    theirs = {} if arguments.alone else implicit_models(dataset, k, arguments.threads)
    kept = searched(name, folder, arguments.marks, arguments.threads)
    rows = []
    for mark in arguments.marks:
        ready = [row for row in theirs.values() if row["seconds"] <= mark]
        best = max(ready, key=lambda row: float(row["recall"]), default=None)
        row: dict[str, Any] = {"seconds": mark, "ours": None, "theirs": best, "ratio": None}
        if mark in kept:
            tested = Recommender.load(kept[mark])
            split = tested.dataset.split
            metrics = evaluate(tested.scorer, split.test, split.seen, (k,))
            row["ours"] = {
                "model": tested.config.model,
                "recall": metrics[f"recall@{k}"],
                "ndcg": metrics[f"ndcg@{k}"],
            }
            row["ratio"] = metrics[f"recall@{k}"] / best["recall"] if best else None
        rows.append(row)
        print(Path(data).name, json.dumps(row), file=sys.stderr, flush=True)
    return {"k": k, "marks": rows, "implicit": theirs}


def loaded(data: str, folder: Path) -> tuple[Dataset, int, str]:
    """The data set, how long lists are, and what `ltocf train` takes."""
    if (Path(data) / "interactions.txt").is_file():
        dataset = next_items(Path(data))
        dataset.save(folder / "data")
        return dataset, 10, str(folder / "data")
    return load_dataset(data), 20, data


def searched(name: str, folder: Path, marks: tuple[float, ...], threads: int) -> dict[float, Path]:
    """Run the search; the version in use at each mark, kept by links to its files."""
    root, kept = folder / "run", dict[float, Path]()
    words = [sys.executable, "-m", "ltocf", "train", name, "-o", str(root)]
    words += ["--budget", str(max(marks)), "--threads", str(threads)]
    began = time.monotonic()
    with subprocess.Popen(words, stdout=sys.stderr) as search:
        for mark in sorted(marks):
            while time.monotonic() < began + mark and search.poll() is None:
                time.sleep(LOOK)
            if (root / MARKER).is_file():
                kept[mark] = folder / f"mark-{mark:g}"
                source = version_path(root, in_use(root).current)
                skipped = shutil.ignore_patterns("versions", "search", ".*")
                shutil.copytree(source, kept[mark], copy_function=os.link, ignore=skipped)
    return kept


def implicit_models(dataset: Dataset, k: int, threads: int) -> dict[str, dict[str, Any]]:
    """Recall and NDCG on test, and seconds to fit, of what users of `implicit` take."""
    from implicit.als import AlternatingLeastSquares
    from implicit.bpr import BayesianPersonalizedRanking
    from implicit.nearest_neighbours import BM25Recommender

    split, found = dataset.split, dict[str, dict[str, Any]]()
    rows = matrix_of(split.seen)
    models: dict[str, Callable[[], Any]] = {
        "BM25": lambda: BM25Recommender(K=100, num_threads=threads),
        "ALS 64": lambda: AlternatingLeastSquares(64, num_threads=threads, random_state=0),
        "ALS 256": lambda: AlternatingLeastSquares(256, num_threads=threads, random_state=0),
        "ALS 128, alpha 10": lambda: AlternatingLeastSquares(
            128, alpha=10, regularization=10, num_threads=threads, random_state=0
        ),
        "BPR": lambda: BayesianPersonalizedRanking(64, num_threads=threads, random_state=0),
    }
    for name, make in models.items():
        model, began = make(), time.monotonic()
        with threadpool_limits(1, "blas"):  # as implicit asks for: it has threads of its own
            model.fit(rows, show_progress=False)
        seconds = time.monotonic() - began
        metrics = evaluate(scores_of(model, rows), split.test, split.seen, (k,))
        found[name] = {"model": name, "seconds": seconds}
        found[name] |= {"recall": metrics[f"recall@{k}"], "ndcg": metrics[f"ndcg@{k}"]}
        print("implicit", found[name], file=sys.stderr, flush=True)
    return found


def matrix_of(pairs: Interactions) -> csr_matrix:
    ones = np.ones(len(pairs), np.float32)
    return csr_matrix((ones, pairs.items, pairs.indptr), shape=(pairs.n_users, pairs.n_items))


def scores_of(model: Any, rows: csr_matrix) -> Callable[[Rows], np.ndarray[Any, Any]]:
    """Of all items, by its factors or by its neighbours."""
    if hasattr(model, "similarity"):
        return lambda users: np.asarray((rows[users] @ model.similarity).toarray(), np.float32)
    return lambda users: np.asarray(model.user_factors[users] @ model.item_factors.T)


def draw(found: dict[str, Any], path: Path) -> None:
    """A panel a data set: ours in steps, theirs as points at the second at which they are ready."""
    figure = Figure(figsize=(2.6 * len(found), 2.4), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (name, of_data) in enumerate(found.items(), 1):
        axes = figure.add_subplot(1, len(found), place)
        ours = [(row["seconds"], row["ours"]["recall"]) for row in of_data["marks"] if row["ours"]]
        axes.plot(*zip(*ours, strict=True), "o-", drawstyle="steps-post", color="#0072B2")
        for model, row in of_data["implicit"].items():
            axes.plot(row["seconds"], row["recall"], "s", color="#7F7F7F", markersize=4)
            axes.annotate(model, (row["seconds"], row["recall"]), fontsize=6, xytext=(3, 3),
                          textcoords="offset points")  # fmt: skip
        axes.set_xscale("log")
        axes.margins(x=0.2, y=0.1)
        axes.set_title(f"{name}: ltocf train (line), implicit", fontsize=7, loc="left")
        axes.set_xlabel("seconds", fontsize=7)
        axes.set_ylabel(f"Recall@{of_data['k']}", fontsize=7)
        axes.tick_params(labelsize=6)
    with replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=["town"], help="names or folders")
    parser.add_argument("--marks", type=float, nargs="+", default=MARKS, help="seconds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="without implicit")
    parser.add_argument("--work", help="where the runs go meanwhile; default: the system's place")
    parser.add_argument("--picture", help="where to draw it, such as anytime.svg")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
