"""Seconds and bytes per interaction, and what is found, from 1 to 100 million interactions.

python -m benchmarks.scale --sizes 1 4 16 --json
python -m benchmarks.scale --sizes 100 --steps 2 --json

Each size is a city with planted tastes, in a process of its own whose whole memory is the figure.
Preparing reads a Parquet log of the city's pairs. With --steps, that many of an epoch's 50 steps
are timed and the epoch is 50 times their median: a figure that is extrapolated is named so.
`recall` is after --epochs epochs, beside that of who knows the truth on the same users.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine
from ltocf.machine.hardware import last_level_cache_bytes

STEPS, JUDGED = 50, 1_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=float, default=[1, 4, 16], help="millions")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0, help="time so many steps of an epoch only")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--lists", type=int, default=100_000, help="users to make lists of")
    parser.add_argument(
        "--random-start", action="store_true", help="no singular vectors; a step takes as long"
    )
    parser.add_argument("--train-only", action="store_true", help="no validation and no lists")
    parser.add_argument("--prepare", action="store_true", help="also prepare a log of the city")
    parser.add_argument("--json", action="store_true", help="one line")
    arguments = parser.parse_args()
    rows = []
    for size in arguments.sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure, [int(size * 1e6), vars(arguments)]))
        print(json.dumps(rows[-1]), flush=True)
    first = rows[0]["epoch"]["microseconds_per_interaction"]
    result = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "last_level_cache_bytes": last_level_cache_bytes(),
        "settings": vars(arguments),
        "sizes": rows,
        "ratio": round(rows[-1]["epoch"]["microseconds_per_interaction"] / first, 2),
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


class Stages:
    """Seconds of each stage, and the most memory that the process had held by its end."""

    def __init__(self, pairs: int) -> None:
        self.pairs, self.rows = pairs, dict[str, dict[str, float]]()

    @contextmanager
    def stage(self, name: str, times: float = 1.0) -> Iterator[None]:
        start, processor = time.perf_counter(), time.process_time()
        yield
        self.note(
            name,
            times * (time.perf_counter() - start),
            times * (time.process_time() - processor),
        )

    def note(self, name: str, seconds: float, processor: float) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.rows[name] = {
            "seconds": round(seconds, 2),
            "processor_seconds": round(processor, 2),
            "microseconds_per_interaction": round(1e6 * seconds / self.pairs, 3),
            "peak_gigabytes": round(peak / 2**30, 2),
            "peak_bytes_per_interaction": round(peak / self.pairs, 1),
        }


def measure(interactions: int, settings: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.city import make_city
    from ltocf.config import BPR, TrainConfig
    from ltocf.graph.bipartite import BipartiteGraph
    from ltocf.machine.threads import use_threads
    from ltocf.models import build_model
    from ltocf.ranking.metrics import evaluate, testable_users
    from ltocf.ranking.top_k import top_k
    from ltocf.training.trainer import Trainer

    use_threads(settings["threads"])
    _compile(settings["dim"])
    stages = Stages(interactions)
    with stages.stage("city"):
        city = make_city(interactions)
    split = city.dataset.split
    if settings["prepare"]:
        _prepare(stages, split)
    with stages.stage("graph"):
        graph = BipartiteGraph(split.train)
        graph.lists._ordered  # noqa: B018 - the order of the nodes, made on first use
    start = "random" if settings["random_start"] else "spectral"
    model = build_model(graph, "ltocf", {"dim": settings["dim"], "start": start})
    with stages.stage("start"):
        model.draw_(0)
    trainer = Trainer(model, TrainConfig(), BPR(), 0, max(settings["epochs"], 1))
    if settings["steps"]:
        _some_steps(stages, trainer, settings["steps"])
    else:
        for epoch in range(1, settings["epochs"] + 1):
            with stages.stage("epoch"):
                trainer.run_epoch(epoch, lambda *progress: None)
    sizes = {
        "interactions": interactions,
        "trained_on": len(split.train),
        "users": graph.n_users,
        "items": graph.n_items,
    }
    if settings["train_only"]:
        return sizes | stages.rows
    with stages.stage("validation"):
        trainer.validate(split.test)
    people = testable_users(split.test, JUDGED)
    model.eval()
    scorer = model.scorer()
    found = evaluate(scorer, split.test, split.train, users=people)["recall@20"]
    possible = evaluate(city.probabilities, split.test, split.train, users=people)["recall@20"]
    listed = np.arange(min(settings["lists"], graph.n_users), dtype=np.int32)
    with stages.stage("lists"):
        top_k(scorer, listed, 10, n_items=graph.n_items, seen=split.train)
    return {
        **sizes,
        "listed_users": len(listed),
        "epochs": 0 if settings["steps"] else settings["epochs"],
        "recall@20": round(found, 4),
        "recall@20_of_the_truth": round(possible, 4),
        **stages.rows,
    }


def _compile(dim: int) -> None:
    """A city so small that only compiling takes time."""
    from benchmarks.city import make_city
    from ltocf.config import BPR, TrainConfig
    from ltocf.graph.bipartite import BipartiteGraph
    from ltocf.models import build_model
    from ltocf.training.trainer import Trainer

    split = make_city(5_000).dataset.split
    model = build_model(BipartiteGraph(split.train), "ltocf", {"dim": dim})
    model.draw_(0)
    trainer = Trainer(model, TrainConfig(), BPR(), 0, 1)
    trainer.run_epoch(1, lambda *progress: None)
    trainer.validate(split.test)


def _some_steps(stages: Stages, trainer: Any, steps: int) -> None:
    """The first steps of an epoch; the epoch is 50 times their median."""
    batches = trainer.model.batches(
        trainer.loss, batch_size=trainer.batch_size, draw_by="pairs", seed=0, epoch=1
    )
    trainer.model.train()
    seconds, processor = [], []
    for step, batch in enumerate(batches):
        if step == steps:
            break
        start = time.perf_counter(), time.process_time()
        trainer.step(batch, step)
        seconds.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    median = statistics.median(seconds), statistics.median(processor)
    stages.note("epoch", STEPS * median[0], STEPS * median[1])
    stages.rows["epoch"]["extrapolated_from_steps"] = len(seconds)


def _prepare(stages: Stages, split: Any) -> None:
    import polars as pl

    from ltocf.data.ingest.prepare import prepare

    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log.parquet"
        pl.DataFrame({"user": split.train.users, "item": split.train.items}).write_parquet(log)
        with stages.stage("prepare"):
            prepare(log, Path(directory) / "data")


if __name__ == "__main__":
    main()
