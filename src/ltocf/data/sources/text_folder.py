"""A folder with train.txt and test.txt in the format of LightGCN: split, with numbers as ids."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.display import read_display
from ltocf.data.ingest.prepare import Recipe
from ltocf.data.pair_cuts import Unknown
from ltocf.data.sources.lightgcn_text import read_lightgcn
from ltocf.data.splits import split_given
from ltocf.errors import ConfigError

FILES = ("train.txt", "test.txt")


def is_text_folder(path: str | Path) -> bool:
    return all((Path(path) / file).is_file() for file in FILES)


def load_text_folder(
    directory: Path, name: str, *, unknown: Unknown = "drop", ordered: bool = False
) -> Dataset:
    """The folder as a data set. Lines have an order only if `ordered` says so: in some published
    sets it is that of time, in others (ml-1m) it means nothing."""
    train, test = (read_lightgcn(directory / file, in_order=ordered) for file in FILES)
    split = split_given(train, test, unknown=unknown)
    return Dataset(name, split, origin={"source": name, "ordered": ordered})


def prepare_text_folder(
    directory: str | Path,
    output: Path,
    recipe: Recipe,
    *,
    ordered: bool = False,
    names: Path | None = None,
    overwrite: bool = False,
) -> tuple[list[str], dict[str, Any]]:
    """Write it as a data set directory; returns what was done, for people and for programs."""
    recipe.check()
    ordinary = Recipe(unknown=recipe.unknown)
    for field in fields(Recipe):
        if getattr(recipe, field.name) != getattr(ordinary, field.name):
            flag = "--" + field.name.replace("_", "-")
            raise ConfigError(
                f"{directory}: train.txt and test.txt are split and numbered already; "
                f"{flag} has no say there"
            )
    name = Path(output).resolve().name
    dataset = load_text_folder(Path(directory), name, unknown=recipe.unknown, ordered=ordered)
    if names is not None:
        shown, _ = read_display(names, dataset.split.train.item_ids.ids, "item")
        dataset = replace(dataset, item_names=shown)
    dataset.save(output, overwrite=overwrite)
    counts, dropped = dataset.counts, dataset.split.dropped
    lines = [
        f"order of lines: {'that of time' if ordered else 'unknown (ordered=True or --ordered)'}",
        *([dropped_line(dropped)] if dropped else []),
        f"kept: {counts['users']:,} users x {counts['items']:,} items",
        f"split: train {counts['train']:,}, test {counts['test']:,} (given)",
        f"written to {output}",
    ]
    return lines, {"output": str(output), "counts": counts, "dropped": dropped, "ordered": ordered}


def dropped_line(count: int) -> str:
    return f"left out: {count:,} test pairs that train has, or whose user or item it does not know"
