"""What benchmarks share: interleaved timings, and the memory a call needs beyond its inputs."""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ltocf.machine.hardware import processor_name
from ltocf.ranking.metrics import Metrics

Task = Callable[[], object]


def parse_arguments(doc: str | None, rounds: int = 7) -> argparse.Namespace:
    """--data, --rounds and --json: what a benchmark of one data set takes."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"default: {rounds}")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


def recall_and_ndcg(metrics: Metrics) -> Metrics:
    """What tables show of an evaluation."""
    return {name: metrics[name] for name in ("recall@20", "ndcg@20")}


def median_seconds(tasks: Mapping[str, Task], rounds: int) -> dict[str, float]:
    """The median of each task, the tasks taken in turn so that a noisy moment hits all of them."""
    for task in tasks.values():
        task()
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            samples[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in samples.items()}


def median_seconds_and_processor_seconds(task: Task, rounds: int) -> tuple[float, float]:
    """The medians of elapsed time and of all processors' time in this process."""
    task()
    samples = []
    for _ in range(rounds):
        start = time.perf_counter(), time.process_time()
        task()
        samples.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    elapsed, processor = zip(*samples, strict=True)
    return statistics.median(elapsed), statistics.median(processor)


def peak_extra_bytes(task: Task) -> int:
    """The most memory held during a call over what was held before it. Linux only."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what glibc keeps of earlier calls would hide this one's
    before = peak = _resident_bytes()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.001):
            peak = max(peak, _resident_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = task()
    peak = max(peak, _resident_bytes())
    done.set()
    watcher.join()
    del result
    return peak - before


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def machine() -> str:
    """The processor, the number of cores we may use, and the memory."""
    gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores of {processor_name()}, {gigabytes:.0f} GB"
