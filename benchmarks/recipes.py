"""The digest of a recipe: everything that `ltocf train` would set for a command, in ten digits.

A figure carries the digest that its command had when it was measured (docs/results/search.md). A
test compares it with the one of today, so that a figure does not outlive its recipe unnoticed. The
digest covers settings, defaults, candidates and the constants of the search, not code.

    python -m benchmarks.recipes ltocf train gowalla --budget 30m recency=0
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import pkgutil
from itertools import pairwise
from typing import Any

import ltocf.search
from ltocf.config import RunConfig, find_config, read_toml
from ltocf.models import MODELS
from ltocf.runs.settings import make_config
from ltocf.search.candidates import CANDIDATES

PLAIN = (int, float, str, bool, tuple)


def recipe_digest(command: str) -> str:
    """Of `ltocf train DATA [--config NAME] [--model NAME] [--budget TIME] [KEY=VALUE]...`"""
    words = command.split()
    if words[:2] != ["ltocf", "train"]:
        raise SystemExit(f"expected 'ltocf train ...', got {command!r}")
    options = dict(pairwise(words))
    values: dict[str, Any] = {"model": {"name": options.get("--model", "auto")}}
    if "--config" in options:
        values = read_toml(find_config(options["--config"]))
    config = make_config(values, [word for word in words if "=" in word])
    recipe = [config.model_dump(exclude={"dataset", "versions"}), options.get("--budget")]
    recipe.append(_search() if config.model_name == "auto" else _defaults(config))
    return hashlib.sha256(json.dumps(recipe, sort_keys=True, default=repr).encode()).hexdigest()[
        :10
    ]


def _defaults(config: RunConfig) -> dict[str, Any]:
    return MODELS[config.model_name].Config(**config.model_options).model_dump()


def _search() -> list[Any]:
    """The candidates, what each has by default, and every number that the search goes by."""
    candidates = {name: repr(candidate) for name, candidate in CANDIDATES.items()}
    defaults = {name: MODELS[name].Config().model_dump() for name in CANDIDATES}
    numbers = {}
    for module in pkgutil.iter_modules(ltocf.search.__path__):
        found = vars(importlib.import_module(f"ltocf.search.{module.name}"))
        for name, value in found.items():
            if name.isupper() and isinstance(value, PLAIN):
                numbers[f"{module.name}.{name}"] = value
    return [candidates, defaults, numbers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="ltocf train ...")
    print(recipe_digest(" ".join(parser.parse_args().command)))


if __name__ == "__main__":
    main()
