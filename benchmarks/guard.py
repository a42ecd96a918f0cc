"""Whether the ratios are still those of docs/results/ratios.json: `make bench`.

    python -m benchmarks.guard           # fails where one is worse by more than a fifth
    python -m benchmarks.guard --write   # take today's as the ones to keep

Both sides of a ratio are taken in one run, so that it holds on a faster or a slower machine; other
programs beside it disturb it all the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import machine

KEPT = Path(__file__).parent.parent / "docs/results/ratios.json"
TOLERANCE = 0.2
DATA = "city-400000"  # built in, so that every machine can


class Ratio(NamedTuple):
    benchmark: str
    options: tuple[str, ...]
    over: tuple[str, ...]  # a key of its result, or two whose quotient is meant
    more_is_better: bool


RATIOS = {
    "torchdiffeq over ours": Ratio(
        "propagation", ("--rounds", "3", "--millions"), ("ratio",), True
    ),
    "torch CSR's product over ours": Ratio(
        "propagation", ("--rounds", "3", "--millions"), ("product_ratio",), True
    ),
    "NumPy's draws over ours": Ratio("sampling", ("--rounds", "15"), ("ratio",), True),
    "evaluation over the bare product": Ratio("evaluation", ("--rounds", "15"), ("ratio",), False),
    "one list over the bare product": Ratio(
        "latency", ("--rounds", "5"), ("one_known_ms", "one_product_ms"), False
    ),
    "everybody's lists over the bare product": Ratio(
        "latency", ("--rounds", "5"), ("ratio",), False
    ),
}


def measure(data: str) -> dict[str, float]:
    """Every ratio now; a benchmark that gives several is run once."""
    results: dict[tuple[str, ...], dict[str, Any]] = {}
    found = {}
    for name, (benchmark, options, over, _) in RATIOS.items():
        command = (f"benchmarks.{benchmark}", "--data", data, *options, "--json")
        if command not in results:
            done = subprocess.run(
                [sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True, check=True
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


def fallen(now: dict[str, float], kept: dict[str, float]) -> list[str]:
    """What is worse by more than the tolerance, one line each."""
    lines = []
    for name, value in now.items():
        before = kept.get(name, value)
        better = value / before if RATIOS[name].more_is_better else before / value
        if better < 1 - TOLERANCE:
            lines.append(f"{name}: {value} now, {before} in {KEPT.name}")
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
    if worse := fallen(now, kept_ratios(KEPT)):
        sys.exit("\n".join(worse))


if __name__ == "__main__":
    main()
