"""Amazon-Beauty as a data set: everybody's items in the order of time, and their attributes."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.lightgcn_text import read_lightgcn
from ltocf.data.splits import Split, split_pairs


def read_beauty(folder: Path) -> Interactions:
    """The pairs of `interactions.txt`, whose places in a line are their times."""
    return read_lightgcn(folder / "interactions.txt", in_order=True)


def with_attributes(folder: Path, split: Split) -> Dataset:
    """The split as a data set whose items have the tags of `item_attributes.json`."""
    attributes: dict[str, list[int]] = json.loads((folder / "item_attributes.json").read_text())
    tags = [
        [str(tag) for tag in attributes.get(str(item), [])] for item in split.train.item_ids.ids
    ]
    return Dataset("beauty", split, pl.DataFrame({"attributes": tags}))


def next_items(folder: Path) -> Dataset:
    """The last item of everybody is test."""
    return with_attributes(folder, split_pairs(read_beauty(folder), "leave-last-out"))
