"""How long LT-OCF trains, from nothing, until it reaches given accuracies on the test set.

Beside it: what one epoch of the authors' path (torchdiffeq's RK4 over torch.sparse, batch 2,048)
takes on the same machine, and implicit's BPR and ALS with the best of a few settings on each
user's latest tenth of train. Every part runs in a process of its own, whose peak memory is
reported. Our clock includes the singular vectors of the start; testing after each epoch, which
only draws the curve, is not on it.

    python -m benchmarks.time_to_accuracy --figure docs/results/time-to-accuracy.png --json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix
from torch import nn

from benchmarks.measure import machine, recall_and_ndcg
from benchmarks.new_users import matrix_of
from benchmarks.propagation import coo_matrix
from ltocf.batches.triples import TripleBatches
from ltocf.config import RunConfig
from ltocf.data.interactions import Interactions
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import hold_out_validation
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.ltocf import LTOCF
from ltocf.ode.reference import propagate
from ltocf.pictures.curves import BLUE, ORANGE
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.runs.settings import read_config
from ltocf.scorers.dot import DotScorer
from ltocf.training.records import EpochRecord, TrainState
from ltocf.training.training import train

BATCH = 2048  # of the authors' code
BPR = [
    {"learning_rate": rate, "regularization": l2, "iterations": iterations}
    for rate in (0.01, 0.05)
    for l2 in (0.001, 0.01)
    for iterations in (100, 300)
]
ALS = [
    {"regularization": l2, "alpha": alpha}
    for l2 in (1.0, 10.0, 50.0, 200.0)
    for alpha in (1.0, 5.0, 20.0, 80.0)
]


def train_ours(config: RunConfig) -> dict[str, Any]:
    """Test metrics over the seconds of training, as the config says, on all of train."""
    split = load_dataset(config.dataset).split
    testing = 0.0
    curve: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache  # no singular vectors from an earlier run
        started = time.perf_counter()
        model = build_model(BipartiteGraph(split.seen), config.model_name, config.model_options)

        def after_epoch(state: TrainState, record: EpochRecord) -> None:
            nonlocal testing
            asked = time.perf_counter()
            seconds = asked - started - testing
            metrics = evaluate(model.scorer(), split.test, split.seen)
            curve.append({"epoch": record.epoch, "seconds": seconds} | recall_and_ndcg(metrics))
            testing += time.perf_counter() - asked

        model.initialise_(config.seed)
        train(model, config.train, config.loss, seed=config.seed, after_epoch=after_epoch)
    return {"curve": curve}


def time_the_authors_path(config: RunConfig, steps: int = 5) -> dict[str, Any]:
    """Seconds of an epoch: one uniform negative, batch 2,048, every step a propagation by
    torchdiffeq over torch.sparse, embeddings and times in one backward pass."""
    pairs = load_dataset(config.dataset).split.seen
    graph = BipartiteGraph(pairs)
    model = LTOCF(graph, LTOCF.Config(learn_times="training"))
    model.initialise_(0)
    A, n_users = coo_matrix(graph), graph.n_users
    E = nn.Parameter(model.weight.detach())
    adam = torch.optim.Adam([E, model.times.inner], lr=1e-3)
    batches = TripleBatches(pairs, batch_size=BATCH, negatives=1, seed=0, epoch=1)
    seconds = []
    for drawn, _ in zip(batches, range(steps + 1), strict=False):
        batch = drawn.whole()
        started = time.perf_counter()
        final = propagate(
            lambda state: torch.sparse.mm(A, state), E, model.times(), model.state_weights,
            solver=model.solver, connection="linear", adjoint=False,
        )  # fmt: skip
        users, positives = final[batch.users], final[batch.positives + n_users]
        negatives = final[batch.negatives[:, 0] + n_users]
        loss = F.softplus((users * (negatives - positives)).sum(1)).mean()
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        seconds.append(time.perf_counter() - started)
    step = sorted(seconds[1:])[steps // 2]  # the first one allocates
    return {"step_seconds": step, "epoch_seconds": step * len(batches)}


def train_implicit(config: RunConfig, name: str) -> dict[str, Any]:
    """implicit's model with the best of its settings on validation, then on all of train."""
    split = load_dataset(config.dataset).split
    latest = split.train.timestamps is not None
    cut = hold_out_validation(split, seed=0, cut="latest" if latest else "random")
    settings = {"bpr": BPR, "als": ALS}[name]
    chosen = max(
        settings, key=lambda choice: _implicit(name, choice, cut.train, cut.valid)["recall@20"]
    )
    return {"settings": chosen} | _implicit(name, chosen, split.seen, split.test)


def _implicit(
    name: str, settings: dict[str, float], train: Interactions, held_out: Interactions
) -> Metrics:
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    kind = {"bpr": BayesianPersonalizedRanking, "als": AlternatingLeastSquares}[name]
    started = time.perf_counter()
    model = kind(factors=64, random_state=0, num_threads=os.cpu_count(), **settings)
    model.fit(csr_matrix(matrix_of(train)), show_progress=False)
    seconds = time.perf_counter() - started
    users, items = (torch.tensor(f) for f in (model.user_factors, model.item_factors))
    metrics = evaluate(DotScorer(users.numpy(), items.numpy(), train), held_out, train)
    return {"seconds": seconds} | recall_and_ndcg(metrics)


def in_own_process(task: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The task's result and the most memory its process held."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_with_memory, (task, arguments))


def _with_memory(task: Callable[..., dict[str, Any]], arguments: Sequence[Any]) -> dict[str, Any]:
    result = task(*arguments)
    return result | {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def first_past(curve: list[dict[str, float]], target: float) -> dict[str, float] | None:
    """When the curve first has this Recall@20."""
    return next((point for point in curve if point["recall@20"] >= target), None)


def draw(report: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    curve = report["ours"]["curve"]
    seconds, recalls = ([point[key] for point in curve] for key in ("seconds", "recall@20"))
    axes.plot(seconds, recalls, ".-", color=BLUE, label="LT-OCF, ours")
    for name, label in (("bpr", "implicit BPR"), ("als", "implicit ALS")):
        found = report[name]
        axes.plot(found["seconds"], found["recall@20"], "s", color=ORANGE)
        place = (found["seconds"], found["recall@20"])
        axes.annotate(label, place, textcoords="offset points", xytext=(7, -4))
    for target in report["targets"]:
        axes.axhline(target, color="grey", linewidth=0.7, linestyle=":")
    axes.set_xlabel("seconds of training")
    axes.set_ylabel("Recall@20 on test")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("src/ltocf/configs/gowalla-ltocf.toml"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="changes")
    parser.add_argument("--targets", type=float, nargs="+", default=[0.17, 0.18, 0.1875])
    parser.add_argument("--figure", type=Path, help="a PNG to draw the curve into")
    parser.add_argument("--json", action="store_true", help="one line")
    arguments = parser.parse_args()
    config = read_config(arguments.config, arguments.changes)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as implicit asks for; we do not use it
    parts = {
        "ours": in_own_process(train_ours, config),
        "authors": in_own_process(time_the_authors_path, config),
        "bpr": in_own_process(train_implicit, config, "bpr"),
        "als": in_own_process(train_implicit, config, "als"),
    }
    report = {"benchmark": "time_to_accuracy", "machine": machine(), **parts}
    report["targets"] = {
        target: first_past(parts["ours"]["curve"], target) for target in arguments.targets
    }
    if past := report["targets"][arguments.targets[-1]]:
        report["ratio"] = parts["authors"]["epoch_seconds"] / past["seconds"]
    if arguments.figure:
        draw(report, arguments.figure)
    print(json.dumps(report, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
