"""A folder with train.txt and test.txt in the format of LightGCN: split, with numbers as ids."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.item_table import add_items
from ltocf.data.ingest.prepare import Recipe
from ltocf.data.pairs.thinning import Unknown
from ltocf.data.sources.lightgcn_text import read_lightgcn
from ltocf.data.sources.line_order import LineOrder, find_order
from ltocf.data.splits import split_given
from ltocf.errors import ConfigError

FILES = ("train.txt", "test.txt")


def is_text_folder(path: str | Path) -> bool:
    return all((Path(path) / file).is_file() for file in FILES)


def load_text_folder(
    directory: Path, name: str, *, unknown: Unknown = "drop", ordered: bool | None = None
) -> Dataset:
    """The folder as a data set. In some published sets the order of a line is that of time, in
    others (ml-1m) it means nothing: `ordered` tells which, or it is found in train.txt alone."""
    train, test = (read_lightgcn(directory / file, in_order=ordered is not False) for file in FILES)
    found = LineOrder(bool(ordered), "as was said") if ordered is not None else find_order(train)
    if not found.ordered:
        train, test = (replace(part, timestamps=None) for part in (train, test))
    split = split_given(train, test, unknown=unknown)
    origin = {"source": name, "ordered": found.ordered, "order": found.reason}
    return Dataset(name, split, origin=origin)


def order_line(dataset: Dataset) -> str | None:
    """What was found out about the order of lines, for people; nothing where nothing had to be."""
    if "order" not in dataset.origin:
        return None
    kind = "of time" if dataset.origin["ordered"] else "without meaning"
    return f"the order of lines is {kind} (order=time|none overrules): {dataset.origin['order']}"


def prepare_text_folder(
    directory: str | Path,
    output: Path,
    recipe: Recipe,
    *,
    ordered: bool | None = None,
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
                f"{flag} does not apply to them"
            )
    name = Path(output).resolve().name
    dataset = load_text_folder(Path(directory), name, unknown=recipe.unknown, ordered=ordered)
    if names is not None:
        dataset = add_items(dataset, names)
    dataset.save(output, overwrite=overwrite)
    counts, dropped = dataset.counts, dataset.split.dropped
    lines = [
        str(order_line(dataset)),
        *([dropped_line(dropped)] if dropped else []),
        f"kept: {counts['users']:,} users x {counts['items']:,} items",
        f"split: train {counts['train']:,}, test {counts['test']:,} (given)",
        f"written to {output}",
    ]
    return lines, {
        "output": str(output),
        "counts": counts,
        "dropped": dropped,
        "ordered": dataset.origin["ordered"],
    }


def dropped_line(count: int) -> str:
    return f"left out: {count:,} test pairs that train has, or whose user or item it does not know"


def ordered_by(order: str | None) -> bool | None:
    """--order as a flag: whether lines are in the order of time; None: detect it."""
    try:
        return {None: None, "time": True, "none": False}[order]
    except KeyError:
        raise ConfigError(f"order = {order!r}: give time or none") from None
