"""How fast, and in how much memory, a CSV log becomes a data set: `ltocf prepare` and plain pandas.

Both read the log, leave out ratings below 3, merge repeated pairs, thin to at least 5 interactions
of every user and item, split each user's pairs 80/20 at random and write Parquet with id tables.
Each run is a process of its own, so that its peak memory is its own.

    python -m benchmarks.ingest --rows 20000000 --json
    python -m benchmarks.ingest --rows 100000000 --repeats 1 --only ltocf --json
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

THRESHOLD, MINIMUM, RATIO, SEED = 3, 5, 0.8, 0
CHUNK_ROWS = 5_000_000


def generate(log: Path, output: Path, rows: int) -> None:
    """A log with text users, numbered items, power-law activity, seconds and ratings of 1 to 5."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng(SEED)
    n_users, n_items = rows // 50, rows // 200
    with log.open("wb") as file:
        for start in range(0, rows, CHUNK_ROWS):
            n = min(CHUNK_ROWS, rows - start)
            users = (random.random(n) ** 2 * n_users).astype(np.int64)
            chunk = pl.DataFrame(
                {
                    "user_id": users * 2_654_435_761 % 2**32,  # so that ids come in no order
                    "item_id": (random.random(n) ** 3 * n_items).astype(np.int64),
                    "timestamp": random.integers(1_600_000_000, 1_700_000_000, n),
                    "rating": random.integers(1, 6, n),
                }
            ).with_columns(pl.format("u{}", "user_id").alias("user_id"))
            chunk.write_csv(file, include_header=start == 0)


def ltocf(log: Path, output: Path, rows: int) -> None:
    from ltocf.data.ingest.prepare import Recipe, prepare

    recipe = Recipe(threshold=THRESHOLD, min_user=MINIMUM, min_item=MINIMUM, ratio=RATIO, seed=SEED)
    prepare(log, output, recipe)


def pandas(log: Path, output: Path, rows: int) -> None:
    import numpy as np
    import pandas as pd

    table = pd.read_csv(log)
    table = table[table["rating"] >= THRESHOLD]
    table = table.groupby(["user_id", "item_id"], as_index=False)["timestamp"].min()
    before = -1
    while len(table) != before:
        before = len(table)
        for column in ("user_id", "item_id"):
            table = table[table.groupby(column)[column].transform("size") >= MINIMUM]
    users, user_ids = pd.factorize(table["user_id"], sort=True)
    items, item_ids = pd.factorize(table["item_id"], sort=True)
    coded = pd.DataFrame(
        {"user": users.astype(np.int32), "item": items.astype(np.int32), "time": table["timestamp"]}
    ).sort_values(["user", "item"])
    shuffled = coded.sample(frac=1, random_state=SEED)
    rank = shuffled.groupby("user").cumcount()
    size = shuffled.groupby("user")["user"].transform("size")
    test = rank < np.floor(size * (1 - RATIO) + 0.5)
    output.mkdir()
    shuffled[~test].sort_values(["user", "item"]).to_parquet(output / "train.parquet", index=False)
    shuffled[test].sort_values(["user", "item"]).to_parquet(output / "test.parquet", index=False)
    pd.DataFrame({"id": user_ids}).to_parquet(output / "users.parquet")
    pd.DataFrame({"id": item_ids}).to_parquet(output / "items.parquet")


STEPS: dict[str, Callable[[Path, Path, int], None]] = {
    "generate": generate,
    "ltocf": ltocf,
    "pandas": pandas,
}


def run_here(step: str, log: Path, output: Path, rows: int) -> None:
    started = time.perf_counter()
    STEPS[step](log, output, rows)
    seconds = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_seconds = usage.ru_utime + usage.ru_stime
    peak_mb = usage.ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": peak_mb}))


def run_apart(step: str, log: Path, rows: int) -> dict[str, float]:
    """Run one step in a process of its own."""
    with tempfile.TemporaryDirectory(dir=log.parent) as folder:
        command = [sys.executable, "-m", "benchmarks.ingest", "--step", step, "--work", folder]
        command += ["--rows", str(rows), "--log", str(log)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[-1])


def compare(rows: int, repeats: int, sides: list[str], work: str | None) -> dict[str, object]:
    with tempfile.TemporaryDirectory(dir=work) as folder:
        log = Path(folder) / "log.csv"
        run_apart("generate", log, rows)
        runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(repeats):
            for side in sides:
                runs[side].append(run_apart(side, log, rows))
        result: dict[str, object] = {"rows": rows, "csv_mb": log.stat().st_size / 2**20}
    medians = {
        side: {key: statistics.median(run[key] for run in runs[side]) for key in runs[side][0]}
        for side in sides
    }
    for side, median in medians.items():
        result[side] = {**median, "rows_per_second": rows / median["seconds"]}
    if len(sides) == 2:
        ours, theirs = (medians[side] for side in sides)
        result["ratio"] = theirs["seconds"] / ours["seconds"]
        result["memory_ratio"] = theirs["peak_mb"] / ours["peak_mb"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["ltocf", "pandas"])
    parser.add_argument("--work", help="folder for the log and the results (default: temporary)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        run_here(options.step, options.log, Path(options.work) / "out", options.rows)
        return
    sides = [options.only] if options.only else ["ltocf", "pandas"]
    result = compare(options.rows, options.repeats, sides, options.work)
    print(json.dumps(result, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
