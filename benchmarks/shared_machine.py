"""Training, sampling and ranking beside a busy neighbour on each core, against the idle machine.

python -m benchmarks.shared_machine --json

With one thread and with as many as there are cores: two must never be slower than one, and a step
beside the neighbours may cost 2.2 times that on the idle machine. A machine that others use while
this runs is not idle, and the result says nothing: the load before it is in the result.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from itertools import count

import numpy as np

from benchmarks.measure import machine, median_seconds, parse_arguments
from ltocf.batches.ahead import ChunkedBatch
from ltocf.batches.triples import TripleBatches
from ltocf.config import BPR, TrainConfig
from ltocf.data.sources.catalog import load_dataset
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.machine.threads import usable_cores, use_threads
from ltocf.models import build_model
from ltocf.ranking.top_k import top_k
from ltocf.training.trainer import Trainer

RANKED = 4_096


def main() -> None:
    arguments = parse_arguments(__doc__, rounds=5)
    load = os.getloadavg()[0]
    train = load_dataset(arguments.data).split.train
    model = build_model(BipartiteGraph(train), "ltocf", {})
    model.draw_(0)
    trainer = Trainer(model, TrainConfig(), BPR(), 0, 30)
    users = np.arange(min(RANKED, train.n_users), dtype=np.int32)
    scorer = model.scorer()

    def endless() -> Iterator[ChunkedBatch]:
        for epoch in count(1):
            yield from TripleBatches(
                train, batch_size=trainer.batch_size, negatives=32, seed=0, epoch=epoch
            )

    batches = endless()  # drawn ahead, as in training

    def step() -> None:
        trainer.step(next(batches), 0)

    def sample() -> None:
        for batch in TripleBatches(train, batch_size=len(train), negatives=1, seed=0, epoch=1):
            for _ in batch.chunks:
                pass

    def rank() -> None:
        top_k(scorer, users, 20, n_items=train.n_items, seen=train)

    tasks = {"step": step, "sample": sample, "rank": rank}
    cores = usable_cores()
    seconds: dict[str, dict[str, float]] = {}
    for neighbours in (0, cores):
        for threads in (1, cores):
            use_threads(threads)
            with busy(neighbours):
                name = f"{threads} threads, {neighbours} neighbours"
                seconds[name] = median_seconds(tasks, arguments.rounds)
    alone, beside = (f"{cores} threads, {n} neighbours" for n in (0, cores))
    one = f"1 threads, {cores} neighbours"
    result = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "load_before": round(load, 2),
        "data": train.fingerprint,
        "seconds": {k: {t: round(s, 4) for t, s in v.items()} for k, v in seconds.items()},
        "beside_neighbours_to_alone": ratios(seconds[beside], seconds[alone]),
        "all_threads_to_one_beside_neighbours": ratios(seconds[beside], seconds[one]),
        "ratio": round(seconds[beside]["step"] / seconds[alone]["step"], 2),
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


def ratios(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    return {name: round(ours[name] / theirs[name], 2) for name in ours}


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many neighbours that do nothing but compute, until the block ends."""
    context = multiprocessing.get_context("spawn")
    neighbours = [context.Process(target=spin, daemon=True) for _ in range(processes)]
    for neighbour in neighbours:
        neighbour.start()
    try:
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.join()


def spin() -> None:
    number = 1
    while True:
        number = number * 16_807 % 2_147_483_647


if __name__ == "__main__":
    main()
