"""MovieLens as shipped: which files belong together, and what their unnamed columns are.

Covers ml-100k (u.data), ml-1m and ml-10m (ratings.dat), and ml-20m, 25m, 32m and latest, whose
CSV files name their columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TypeVar

LOG_AND_ITEMS = (
    ("ratings.dat", "movies.dat"),
    ("ratings.csv", "movies.csv"),
    ("u.data", "u.item"),
)
RATING = ("user", "item", "rating", "time")
COLUMNS = {
    "ratings.dat": RATING,
    "u.data": RATING,
    "movies.dat": ("item", "title", "genres"),
    "u.item": ("item", "title", "released"),
}
UNQUOTED = frozenset({"u.item", "u.data"})

AnyPath = TypeVar("AnyPath", bound=PurePath)


def find_movielens(files: Iterable[AnyPath]) -> tuple[AnyPath, AnyPath] | None:
    """The log and the table of items among these files, if both lie in one folder."""
    by_path = {str(file): file for file in files}
    for file in by_path.values():
        for log, items in LOG_AND_ITEMS:
            if file.name == log and str(file.with_name(items)) in by_path:
                return file, by_path[str(file.with_name(items))]
    return None
