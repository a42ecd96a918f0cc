"""make faults: the trials of this folder many times, from a seed, within a time.

The last line of output is one JSON object of counts; --write puts it into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

from . import damage, disks, inputs, kills, pairs
from .kills import World
from .lab import ROOT, Lab
from .town import TRAIN

Trial = tuple[str, Callable[[], object]]


def trials(world: World, chance: random.Random, rounds: int) -> Iterator[Trial]:
    """Each trial with the name under which it is counted."""
    yield from harmed_files(world, chance)
    for round_ in range(rounds):
        for name in kills.SCENARIOS:
            for _ in range(2):
                yield f"kill {name}", lambda name=name: kills.kill_once(world, name, chance)
        for _ in range(2):
            yield "kill download", lambda: kills.kill_download_once(world, chance)
        for name in disks.COMMANDS:
            yield f"full {name}", lambda name=name: disks.fill_disk(world, name, chance)
            yield f"limit {name}", lambda name=name: disks.limit_file_sizes(world, name, chance)
            if not round_:
                yield f"read-only {name}", lambda name=name: disks.refuse_writing(world, name)
        for name in pairs.TWICE:
            yield f"twice {name}", lambda name=name: pairs.same_twice(world, name)
        yield "two updates", lambda: pairs.two_updates(world)
        yield "read and replace", lambda: pairs.read_while_replaced(world, chance)


def harmed_files(world: World, chance: random.Random) -> Iterator[Trial]:
    call = "tests.faults.damage:damage_file"
    world.do("train", "data", "-o", "other-run", *TRAIN, "seed=7")
    world.do("prepare", "log.csv", "-o", "other-data", "--seed", "3")
    for kind in ("run", "data"):
        for name in damage.files_of(world.directory / kind):
            seed = chance.randrange(10**6)

            def harm(kind: str = kind, name: str = name, seed: int = seed) -> object:
                world.fresh(kind)
                arguments = (kind, f"{kills.TRIAL}/{kind}", name, f"other-{kind}", seed)
                return world.lab.call(call, *arguments)

            yield f"harm {kind}/{name}", harm

    def harm_cache() -> object:
        world.fresh()
        return world.lab.call("tests.faults.damage:damage_cache", kills.TRIAL, 1)[1]

    yield "harm cache", harm_cache


def run(seconds: float, seed: int, rounds: int) -> dict[str, Any]:
    """Do as many trials as there is time for; what failed is told at once."""
    started, counts, failures = time.monotonic(), Counter[str](), 0
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory, Lab(Path(directory)) as lab:
        world = World(lab)
        for name, trial in trials(world, chance, rounds):
            if time.monotonic() - started > seconds:
                counts["left out for want of time"] += 1
                continue
            kind = name.partition(" ")[0]
            try:
                found = trial()
            except AssertionError as failure:
                failures += 1
                print(f"FAILED {name}: {str(failure)[:2000]}", file=sys.stderr, flush=True)
                continue
            if isinstance(found, dict):
                counts["harms"] += sum(found.values())
                counts["harms named"] += found.get("named", 0)
            elif found is not None:
                counts[f"{kind} trials"] += 1
                counts[f"{kind} hits"] += int(found)
    left = max(seconds - (time.monotonic() - started), 30)
    for name, number in inputs.fuzz(seconds=min(left, 180), seed=seed).items():
        counts[name] += number
    return {
        "seed": seed,
        "failures": failures + counts.pop("input failures", 0),
        "seconds": round(time.monotonic() - started),
    } | dict(sorted(counts.items()))


def write(report: dict[str, Any]) -> None:
    """Put the counts between the marks in docs/reliability.md."""
    page = ROOT / "docs" / "reliability.md"
    rows = "".join(f"| {key} | {value:,} |\n" for key, value in report.items())
    table = f"`make faults`, {date.today()}\n\n| | |\n| --- | ---: |\n{rows}"
    table = f"<!-- counts -->\n{table}<!-- end -->"
    text = re.sub(r"<!-- counts -->.*<!-- end -->", lambda _: table, page.read_text(), flags=re.S)
    page.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Do the damage, many times.")
    parser.add_argument("--seconds", type=float, default=1800, help="No new trial after these.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10, help="14 kills and more in each.")
    parser.add_argument("--write", action="store_true", help="Into docs/reliability.md.")
    options = parser.parse_args()
    report = run(options.seconds, options.seed, options.rounds)
    if options.write:
        write(report)
    print(json.dumps(report))
    sys.exit(report["failures"] > 0)


if __name__ == "__main__":
    main()
