"""Turn the ids of a request into rows, without loading a model: unknown ids are refused at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ltocf.data.dataset_files import read_ids, read_table
from ltocf.data.interactions import Id, IdMap, Rows, shorten_id
from ltocf.errors import DataError

TABLES = (".parquet", ".csv")  # the kinds of files that lists are written to


def refuse_unknown(
    data: Path, *, users: Sequence[Id] = (), items: Sequence[Id] = (), strict: bool = False
) -> None:
    """Raise the error that a request with these ids would, from a data set's id tables alone."""
    for kind, wanted in (("user", users), ("item", items)):
        if wanted:
            try:
                known = read_ids(data, read_table(data, f"{kind}s.parquet"))
            except DataError:  # loading the run will raise a better error
                return
            known_rows(known, wanted, kind, strict=strict)


def as_list(ids: Id | Iterable[Id]) -> list[Id]:
    """The ids of a request, each a text or a whole number."""
    listed = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str) else [ids]
    for id_ in listed:
        # Otherwise True would match the integer id 1, and None the text 'None'.
        if isinstance(id_, bool) or not isinstance(id_, str | int | np.integer):
            raise DataError(f"an id is a text or a whole number, got {shorten_id(id_)}")
    return listed


def known_rows(ids: IdMap, wanted: Id | Iterable[Id], kind: str, *, strict: bool) -> Rows:
    """The rows of the ids that are known; with `strict`, or if none is, a DataError."""
    listed = as_list(wanted)
    if strict or len(listed) == 1:
        return ids.rows(listed, kind=kind)
    rows = ids.find(listed)
    known = rows[rows >= 0]
    if listed and not len(known):
        raise DataError(
            f"none of the {len(listed)} {kind}s is in the training data; "
            f"the first is {shorten_id(listed[0])}"
        )
    return known


def rows_of_histories(
    ids: IdMap, histories: Mapping[Id, Sequence[Id]], *, strict: bool
) -> list[Rows]:
    """The rows of the known items of each history; with `strict`, unknown items are a DataError
    that names the history."""
    found = []
    for name, items in histories.items():
        listed = as_list(items)
        rows = ids.find(listed)
        if strict and (rows < 0).any():
            unknown = shorten_id(listed[int(np.argmax(rows < 0))])
            raise DataError(
                f"the history of {shorten_id(name)} has the unknown item {unknown}: not in the "
                "training data"
            )
        found.append(rows[rows >= 0])
    return found


def unknown_ids(ids: IdMap, wanted: Id | Iterable[Id]) -> list[Id]:
    listed = as_list(wanted)
    return [id_ for id_, row in zip(listed, ids.find(listed), strict=True) if row < 0]
