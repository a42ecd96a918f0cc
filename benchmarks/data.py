"""Data for benchmarks: by name or directory, a city of any size, or Amazon-Beauty's next items."""

from __future__ import annotations

from pathlib import Path

from benchmarks.beauty import next_items
from benchmarks.city import make_city
from ltocf.data.dataset import Dataset
from ltocf.data.sources.catalog import load_dataset

CITY = "city-"


def read_data(name: str) -> Dataset:
    """What `load_dataset` knows, `city-N` of about N visits, or the folder of Amazon-Beauty."""
    if name.startswith(CITY):
        return make_city(int(name.removeprefix(CITY))).dataset
    if (Path(name) / "item_attributes.json").exists():
        return next_items(Path(name))
    return load_dataset(name)
