"""Does a search end when it was told to, and is there always a whole run?

python -m benchmarks.budgets --data gowalla --json
python -m benchmarks.budgets --data gowalla --runs 20 --kills 50 --neighbours 2 --json

Runs of `ltocf train DATA --budget B` with B from 5 to 300 seconds, the first half alone, the second
beside busy processes: how long each took, and whether it left a run that recommends. Then a search
is killed (SIGKILL, the whole process group) at random moments and resumed, again and again: once
the first version was saved, the run must load every time. `ratio` is the worst lateness relative
to what is allowed: a tenth of the budget, or three seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine
from ltocf.recommend.recommender import Recommender
from ltocf.runs.versions import MARKER

SHORTEST, LONGEST = 5.0, 300.0
SHARE, SECONDS = 0.1, 3.0  # by which a run may be late


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        runs = list(timed_runs(Path(folder), arguments))
        kills = killed_runs(Path(folder), arguments) if arguments.kills else {}
    worst = max((run["late"] / run["allowed"] for run in runs), default=None)
    result = {"machine": machine(), "data": arguments.data, "ratio": worst}
    result |= {"runs": runs, "kills": kills}
    print(json.dumps(result, indent=None if arguments.json else 2))


def timed_runs(folder: Path, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Budgets from the shortest to the longest by equal factors, alone and then beside others."""
    n = max(arguments.runs // 2, 1)
    factor = (arguments.longest / SHORTEST) ** (1 / max(n - 1, 1))
    budgets = [round(SHORTEST * factor**step, 1) for step in range(n)]
    for neighbours in (0, arguments.neighbours)[: 1 if arguments.runs < 2 else 2]:
        with busy(neighbours):
            for budget in budgets:
                root = folder / f"run-{neighbours}-{budget:g}"
                began = time.monotonic()
                ended = subprocess.run(command(arguments.data, root, budget), capture_output=True)
                elapsed = time.monotonic() - began
                found = {"budget": budget, "neighbours": neighbours, "elapsed": round(elapsed, 2)}
                found |= {"late": max(elapsed - budget, 0.0), "code": ended.returncode}
                found |= {"allowed": max(SHARE * budget, SECONDS), "whole": is_whole(root)}
                print(found, file=sys.stderr, flush=True)
                yield found


def killed_runs(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """How often a search that was killed had saved a version, and how often that was whole."""
    draw, root = np.random.default_rng(arguments.seed), folder / "killed"
    saved = whole = 0
    for _ in range(arguments.kills):
        fresh = not (root / MARKER).is_file()
        words = command(arguments.data, root, LONGEST)
        resumed = [sys.executable, "-m", "ltocf", "train", "--resume", "-o", str(root)]
        search = subprocess.Popen(
            words if fresh else [*resumed, "--budget", str(LONGEST)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(draw.uniform(0.5, arguments.within))
        os.killpg(search.pid, signal.SIGKILL)  # its worker ends with it
        search.wait()
        if (root / MARKER).is_file():
            saved += 1
            whole += is_whole(root)
        time.sleep(1)
    return {"kills": arguments.kills, "with a version": saved, "whole": whole}


def is_whole(root: Path) -> bool:
    """Whether the run loads, and recommends."""
    try:
        recommender = Recommender.load(root)
        user = recommender.dataset.split.train.user_ids.ids[0]
        return recommender.recommend(user, 5).height == 5
    except Exception as error:
        print(f"{root}: {error!r}", file=sys.stderr)
        return False


def command(data: str, root: Path, budget: float) -> list[str]:
    return [
        sys.executable, "-m", "ltocf", "train", data, "-o", str(root), "--budget", f"{budget:g}",
    ]  # fmt: skip


@contextmanager
def busy(n: int) -> Iterator[None]:
    """So many processes that do nothing else than compute."""
    burn = [sys.executable, "-c", "while True: pass"]
    neighbours = [subprocess.Popen(burn) for _ in range(n)]
    try:
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--runs", type=int, default=20, help="half of them beside neighbours")
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds")
    parser.add_argument("--neighbours", type=int, default=2, help="busy processes")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--within", type=float, default=20.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--work", help="where the runs go meanwhile; default: the system's place")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
