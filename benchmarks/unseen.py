"""What no settings reach on logs that no recommender was tuned on: the packages of a Debian system.

python -m benchmarks.unseen --budget 300 --json

Two logs are read off `apt-cache dumpavail` (after `apt-get update`): which packages a package
depends on, recommends or suggests, and which tags it has; packages are users. Those with fewer
than five items, and items with fewer than five packages, are left out; a fifth of each package's
items, at random, is the test. The logs change with the release of Debian, so figures do too;
ratio is the smaller one of LT-OCF's Recall@20 to GF-CF's.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import polars as pl

from benchmarks.any_data import smallest_ratio, without_settings
from benchmarks.measure import machine
from ltocf.data.dataset import Dataset
from ltocf.data.ingest.read_log import read_log
from ltocf.data.splits import split_pairs

RELATIONS = {"Depends", "Pre-Depends", "Recommends", "Suggests"}
FEWEST = 5


def main() -> None:
    arguments = parse()
    packages = list(read_packages(dump()))
    found: dict[str, Any] = {}
    for name, fields in {"dependencies": RELATIONS, "tags": {"Tag"}}.items():
        rows = [(package, item) for package, field, item in packages if field in fields]
        dataset = as_dataset(name, rows)
        found[name] = dataset.counts | without_settings(dataset, arguments.budget, 0)
    result = {"machine": machine(), "ratio": smallest_ratio(found), "data": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def dump() -> str:
    try:
        return subprocess.run(
            ["/usr/bin/apt-cache", "dumpavail"], capture_output=True, check=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"needs a Debian system and its 'apt-get update': {error}") from None


def read_packages(text: str) -> Iterator[tuple[str, str, str]]:
    """(package, field, item) for every package that a field names, or tag that it has."""
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): *((?:.*)(?:\n .*)*)", stanza, re.MULTILINE))
        for field in RELATIONS | {"Tag"}:
            for item in re.split(r"[,|]", fields.get(field, "")):
                # A version follows in brackets, or an architecture after a colon; tags have "::".
                name = item.split()[0] if item.split() else ""
                if field != "Tag":
                    name = name.partition(":")[0]
                if name:
                    yield fields["Package"], field, name


def as_dataset(name: str, rows: list[tuple[str, str]]) -> Dataset:
    log = pl.DataFrame(rows, schema=["user", "item"], orient="row").unique(maintain_order=True)
    size = -1
    while len(log) != size:
        size = len(log)
        for column in ("user", "item"):
            log = log.filter(pl.len().over(column) >= FEWEST)
    return Dataset(name, split_pairs(read_log(log).interactions, ratio=0.8, seed=0))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=300, help="of auto; 0 leaves it out")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
