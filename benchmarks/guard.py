"""Whether the ratios are still those of docs/results/ratios.json: `make bench`.

    python -m benchmarks.guard           # fails where one is worse by more than a fifth
    python -m benchmarks.guard --write   # take today's as the ones to keep

Both sides of a ratio are taken in one run, so that it holds on a faster or a slower machine. One
thread measures, on random pairs of Gowalla's size: other programs disturb two threads that wait for
each other far more, and on smaller data what a call costs hides what the work costs. What seems to
have fallen is measured once more, and the better of both counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import machine

KEPT = Path(__file__).parent.parent / "docs/results/ratios.json"
TOLERANCE = 0.2
DATA = "random-800000"  # built in, so that every machine can
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Ratio(NamedTuple):
    benchmark: str
    options: tuple[str, ...]
    over: tuple[str, ...]  # a key of its result, or two whose quotient is meant
    more_is_better: bool


PROPAGATION = ("--threads", "1", "--rounds", "2", "--millions")
RATIOS = {
    "torchdiffeq over ours": Ratio("propagation", PROPAGATION, ("ratio",), True),
    "torch CSR's product over ours": Ratio("propagation", PROPAGATION, ("product_ratio",), True),
    "torch CSR's product over a step of ours": Ratio(
        "propagation", PROPAGATION, ("step_ratio",), True
    ),
    "NumPy's draws over ours": Ratio("sampling", ("--rounds", "15"), ("ratio",), True),
    "evaluation over the bare product": Ratio("evaluation", ("--rounds", "3"), ("ratio",), False),
    "one list over the bare product": Ratio(
        "latency", ("--rounds", "3"), ("one_known_ms", "one_product_ms"), False
    ),
    "everybody's lists over the bare product": Ratio(
        "latency", ("--rounds", "3"), ("ratio",), False
    ),
}


def measure(data: str, names: Iterable[str] = RATIOS) -> dict[str, float]:
    """These ratios now; a benchmark that gives several is run once."""
    results: dict[tuple[str, ...], dict[str, Any]] = {}
    found = {}
    for name in names:
        benchmark, options, over, _ = RATIOS[name]
        command = (f"benchmarks.{benchmark}", "--data", data, *options, "--json")
        if command not in results:
            done = subprocess.run(
                [sys.executable, "-m", *command],
                stdout=subprocess.PIPE,
                env=os.environ | ONE_THREAD,
                text=True,
                check=True,
            )
            results[command] = json.loads(done.stdout.splitlines()[-1])
        value, *by = (results[command][key] for key in over)
        found[name] = round(value / by[0] if by else value, 3)
    return found


def kept_ratios(path: Path) -> dict[str, float]:
    """Those to compare with; without any there is nothing to guard, which is no success."""
    if not path.exists():
        sys.exit(f"no {path.name} yet: python -m benchmarks.guard --write, on an idle machine")
    ratios: dict[str, float] = json.loads(path.read_text())["ratios"]
    return ratios


def fallen(now: dict[str, float], kept: dict[str, float]) -> dict[str, str]:
    """What is worse by more than the tolerance, and a line that says so."""
    lines = {}
    for name, value in now.items():
        before = kept.get(name, value)
        better = value / before if RATIOS[name].more_is_better else before / value
        if better < 1 - TOLERANCE:
            lines[name] = f"{name}: {value} now, {before} in {KEPT.name}"
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--write", action="store_true", help="keep these")
    arguments = parser.parse_args()
    now = measure(arguments.data)
    print(json.dumps(now, indent=2))
    if arguments.write:
        record = {"machine": machine(), "date": date.today().isoformat(), "data": arguments.data}
        KEPT.write_text(json.dumps(record | {"ratios": now}, indent=2) + "\n")
        return
    kept = kept_ratios(KEPT)
    if worse := fallen(now, kept):
        worse = fallen(measure(arguments.data, worse), kept)
    if worse:
        sys.exit("\n".join(worse.values()))


if __name__ == "__main__":
    main()
