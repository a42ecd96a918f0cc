"""A log of many Parquet files becomes a data set, read by one process and by several.

Ratings below 3 are left out, repeats merged, users and items with fewer than 5 interactions dropped
and each user's pairs split 80/20. Each run is a process of its own; the data sets are compared.

    python -m benchmarks.lake --rows 20000000 --processes 1 2 --json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.measure import machine

PART_ROWS = 5_000_000


def generate(lake: Path, rows: int) -> None:
    """Text users, numbered items, power-law activity, seconds and ratings of 1 to 5."""
    lake.mkdir()
    n_users, n_items = rows // 50, rows // 200
    for part, start in enumerate(range(0, rows, PART_ROWS)):
        random, n = np.random.default_rng([0, part]), min(PART_ROWS, rows - start)
        users = (random.random(n) ** 2 * n_users).astype(np.int64)
        pl.DataFrame(
            {
                "user_id": users * 2_654_435_761 % 2**32,  # so that ids come in no order
                "item_id": (random.random(n) ** 3 * n_items).astype(np.int64),
                "timestamp": random.integers(1_600_000_000, 1_700_000_000, n),
                "rating": random.integers(1, 6, n),
            }
        ).with_columns(pl.format("u{}", "user_id").alias("user_id")).write_parquet(
            lake / f"part-{part:05}.parquet"
        )


def run_here(lake: Path, output: Path, processes: int) -> None:
    from ltocf.data.ingest.prepare import Recipe, prepare

    stages: dict[str, float] = {}
    before = ["", time.perf_counter()]

    def note(stage: str, done: float, total: float | None = None, text: str = "") -> None:
        now = time.perf_counter()
        if before[0]:
            stages[str(before[0])] = stages.get(str(before[0]), 0) + now - float(before[1])
        before[:] = [stage, now]

    started = time.perf_counter()
    recipe = Recipe(threshold=3, min_user=5, min_item=5)
    prepare(lake, output, recipe, processes=processes, progress=note)
    seconds = time.perf_counter() - started
    note("", 0)
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    here, others = map(resource.getrusage, whose)
    result = {
        "seconds": round(seconds, 1),
        "processor_seconds": round(
            sum(each.ru_utime + each.ru_stime for each in (here, others)), 1
        ),
        "peak_mb": round(here.ru_maxrss / 1024),
        "peak_mb_of_a_reader": round(others.ru_maxrss / 1024),
        "stages": {stage: round(taken, 1) for stage, taken in stages.items()},
    }
    print(json.dumps(result))


def digest(folder: Path) -> str:
    """Of all files of a data set."""
    found = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        found.update(str(file.relative_to(folder)).encode())
        with file.open("rb") as opened:
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--work", help="folder for the log and the results (default: temporary)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--step", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        lake, output = arguments.step
        run_here(lake, output, arguments.processes[0])
        return
    runs, digests = {}, set()
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        lake = Path(folder) / "lake"
        generate(lake, arguments.rows)
        megabytes = sum(file.stat().st_size for file in lake.iterdir()) / 2**20
        for processes in arguments.processes:
            output = Path(folder) / f"of-{processes}" / "dataset"
            command = [sys.executable, "-m", "benchmarks.lake", "--step", lake, output]
            command += ["--processes", str(processes)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            runs[processes] = json.loads(done.stdout.splitlines()[-1])
            runs[processes]["rows_per_second"] = round(arguments.rows / runs[processes]["seconds"])
            digests.add(digest(output))
    result = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "rows": arguments.rows,
        "megabytes": round(megabytes),
        "processes": runs,
        "same_bytes": len(digests) == 1,
    }
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
