"""One, two and four processes of one thread each: speed-up, bytes sent per step, equality.

python -m benchmarks.distributed --interactions 4 --processes 1 2 4 --json

Each number of processes trains the same city for --steps steps and ranks some users. Bytes are
those that the loopback device carried in a step, all processes together, beside what the model of
docs/scale.md says: 2 (P - 1) times the partial scores of the batch. The speed-up stands beside that
of processes which have as many columns each and say nothing to each other: what the machine lets
any column split gain. More processes than cores share them, so their speed-up says nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine

RANKED, K = 2_000, 20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--interactions", type=float, default=4, help="millions")
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--json", action="store_true", help="one line")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
        return
    rows: dict[int, dict[str, Any]] = {}
    seconds: dict[tuple[int, bool], list[float]] = {}
    for _ in range(arguments.rounds):  # in turns, since the machine is faster at some times
        for count in arguments.processes:
            for words in [[], ["--apart"]] if count > 1 else [[]]:
                row = run(count, [*sys.argv[1:], *words])
                seconds.setdefault((count, bool(words)), []).append(row["step_seconds"])
                if not words:
                    rows[count] = row
    first = arguments.processes[0]
    alone = dict(rows[first])
    for count, row in rows.items():
        for name in ("embeddings", "lists"):
            row[name] = compare(name, row[name], alone[name])
        row["largest_difference_of_losses"] = max(
            abs(a - b) for a, b in zip(row["losses"], alone["losses"], strict=True)
        )
        row["step_seconds"] = seconds[count, False]
        row["speed_up"] = speed_up(seconds[first, False], seconds[count, False])
        row["speed_up_apart"] = speed_up(
            seconds[first, False], seconds.get((count, True), seconds[count, False])
        )
    result = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "interactions": arguments.interactions,
        "processes": list(rows.values()),
        "ratio": list(rows.values())[:2][-1]["speed_up"],
    }
    print(json.dumps(result, indent=None if arguments.json else 2, default=str))


def speed_up(alone: list[float], together: list[float]) -> float:
    """The median over the rounds."""
    return round(statistics.median(a / b for a, b in zip(alone, together, strict=True)), 2)


def compare(name: str, ours: Any, theirs: Any) -> float:
    """The largest difference of embeddings; the share of lists that are not the same sets."""
    if name == "embeddings":
        return float(np.abs(ours - theirs).max())
    return float(np.mean([set(a) != set(b) for a, b in zip(ours, theirs, strict=True)]))


def run(count: int, words: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory)
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        command = [sys.executable, *launcher, "-m", "benchmarks.distributed", *words]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run([*command, "--worker", directory], check=True, env=environment)
        row: dict[str, Any] = json.loads((output / "row.json").read_text())
        return row | {name: np.load(output / f"{name}.npy") for name in ("embeddings", "lists")}


def work(arguments: argparse.Namespace) -> None:
    from benchmarks.city import make_city
    from ltocf.config import BPR, TrainConfig
    from ltocf.distributed import count, is_first, processes, wait
    from ltocf.graph.bipartite import BipartiteGraph
    from ltocf.machine.threads import use_threads
    from ltocf.models import build_model
    from ltocf.ranking.top_k import top_k
    from ltocf.training.columns import split_over_processes
    from ltocf.training.trainer import Trainer

    use_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    # A core each, or the thread that draws ahead would have another one to itself.
    os.sched_setaffinity(0, {cores[int(os.environ["LOCAL_RANK"]) % len(cores)]})
    with processes():
        split = make_city(int(arguments.interactions * 1e6)).dataset.split
        dim = arguments.dim // count() if arguments.apart else arguments.dim
        model = build_model(BipartiteGraph(split.train), "ltocf", {"dim": dim})
        model.draw_(0)
        loss = BPR()
        with nullcontext() if arguments.apart else split_over_processes(model):
            trainer = Trainer(model, TrainConfig(), loss, 0, 30)
            batches = model.batches(
                loss, batch_size=trainer.batch_size, draw_by="pairs", seed=0, epoch=1
            )
            seconds, sent, losses = [], [], []
            for step, batch in zip(range(arguments.steps), batches, strict=False):
                wait()
                start, before = time.perf_counter(), loopback_bytes()
                losses.append(trainer.step(batch, step))
                seconds.append(time.perf_counter() - start)
                wait()
                sent.append(loopback_bytes() - before)
        users = np.arange(RANKED, dtype=np.int32)
        lists = top_k(model.scorer(), users, K, n_items=split.train.n_items, seen=split.train)
        if not is_first():
            return
        scores = trainer.batch_size * (1 + model.negatives(loss)) * 4
        row = {
            "processes": count(),
            "step_seconds": statistics.median(seconds[1:]),
            "bytes_sent_per_step": statistics.median(sent[1:]),
            "bytes_by_the_model": 2 * (count() - 1) * scores,
            "losses": losses,
        }
        (arguments.worker / "row.json").write_text(json.dumps(row))
        np.save(arguments.worker / "embeddings.npy", model.state_dict()["weight"].numpy())
        np.save(arguments.worker / "lists.npy", lists.items)


def loopback_bytes() -> int:
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    return 0


if __name__ == "__main__":
    main()
