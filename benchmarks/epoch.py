"""Where the processor seconds of an epoch of LT-OCF go, part by part, and of all of it.

python -m benchmarks.epoch --data $LTOCF_DATA/gowalla --json

Each part is done alone as often as an epoch does it, on one thread unless --threads says otherwise.
What remains of the whole beside their sum is Python's and torch's share.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from datetime import date
from typing import Any

import torch

from benchmarks.data import read_data
from benchmarks.measure import machine
from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.config import BPR, TrainConfig
from ltocf.data.splits import hold_out_validation
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.machine.threads import use_threads
from ltocf.models import build_model
from ltocf.models.embedding import EmbeddingModel
from ltocf.training.trainer import Trainer


class Epoch:
    """One epoch as training has it, and each of its parts by itself."""

    def __init__(self, data: str, **options: Any) -> None:
        dataset = read_data(data)
        config = TrainConfig()
        split = dataset.split
        self.split = split if len(split.valid) else hold_out_validation(split, seed=0)
        model = build_model(BipartiteGraph(self.split.train), "ltocf", options)
        assert isinstance(model, EmbeddingModel)
        self.model, self.loss = model, BPR()
        model.draw_(0)
        self.trainer = Trainer(model, config, self.loss, seed=0, epochs=30)
        self.drawn = [chunks(batch) for batch in self.batches()]

    def batches(self) -> Any:
        size = self.trainer.batch_size
        return self.model.batches(self.loss, batch_size=size, draw_by="pairs", seed=0, epoch=1)

    def whole(self) -> None:
        self.trainer.run_epoch(1, lambda *of: None)

    def draw(self) -> None:
        for batch in self.batches():
            for _ in batch.chunks:
                pass

    def propagate(self) -> None:
        with torch.no_grad():
            for _ in self.drawn:
                self.model.embeddings()

    def score(self) -> None:
        """The loss and its gradient by the table, on a table that is there."""
        table = self.model.embeddings().detach().requires_grad_()
        embeddings = self.model.embeddings
        self.model.embeddings = lambda: table  # type: ignore[method-assign]
        for parts in self.drawn:
            rows = sum(len(part.users) for part in parts)
            self.model.batch_loss(ChunkedBatch(rows, iter(parts)), self.loss)
        self.model.embeddings = embeddings  # type: ignore[method-assign]

    def propagate_back(self) -> None:
        table = self.model.embeddings()
        gradient = torch.randn_like(table)
        for _ in self.drawn:
            torch.autograd.grad(table, self.model.weight, gradient, retain_graph=True)

    def adam(self) -> None:
        self.model.weight.grad = torch.randn_like(self.model.weight)
        for _ in self.drawn:
            self.trainer.optimizers["weights"].step()
        self.trainer.optimizers["weights"].zero_grad()

    def validate(self) -> None:
        self.trainer.validate(self.split.valid)


def chunks(batch: ChunkedBatch) -> list[Batch]:
    return list(batch.chunks)


def processor_seconds(task: Callable[[], None], rounds: int) -> dict[str, float]:
    """The medians of processor time and of elapsed time."""
    samples = []
    for _ in range(rounds):
        start = time.process_time(), time.perf_counter()
        task()
        samples.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    processor, elapsed = (statistics.median(of) for of in zip(*samples, strict=True))
    return {"processor_seconds": round(processor, 3), "elapsed_seconds": round(elapsed, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one line")
    arguments = parser.parse_args()
    use_threads(arguments.threads)
    epoch = Epoch(arguments.data, learn_times=False, start="random")
    epoch.trainer.step(next(iter(epoch.batches())), 0)  # compiles
    parts = ("draw", "propagate", "score", "propagate_back", "adam", "validate")
    result = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "threads": arguments.threads,
        "batches": len(epoch.drawn),
        "negatives": epoch.model.negatives(epoch.loss),
        "whole": processor_seconds(epoch.whole, arguments.rounds),
        **{name: processor_seconds(getattr(epoch, name), arguments.rounds) for name in parts},
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
