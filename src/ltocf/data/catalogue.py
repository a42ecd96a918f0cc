"""The attributes of the items, typed, with a row for each item.

A catalogue is immutable. Changes make a new one, in which every old item keeps its row and new ones
come after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.attributes import (
    ROLES,
    TAGS,
    TIMES,
    Kind,
    as_json,
    column_called,
    kind_by_name,
    kind_of_value,
    plain,
    typed_value,
)
from ltocf.data.ids import Id, IdMap, shorten_id
from ltocf.data.pairs.columns import Rows
from ltocf.errors import ConfigError, DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NAMING = ("name", "title", "label")


class TagMatrix(NamedTuple):
    """Which item has which tag; a category is a tag too."""

    matrix: csr_array  # (n_items, n_tags) of float32 ones
    tags: list[tuple[str, str]]  # the column and the value of each


@dataclass(frozen=True)
class ItemChange:
    """A change of one item: some attributes, all of them (`whole`), or that it is hidden."""

    item: Id
    attributes: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False  # attributes that are not given are removed
    hidden: bool | None = None  # hidden, shown again, or unchanged


@dataclass(frozen=True, eq=False)
class Catalogue:
    """`table` has a typed column for each attribute; its row r describes item r."""

    ids: IdMap
    table: pl.DataFrame
    hidden: NDArray[np.bool_] | None = None  # (n_items,) items that were hidden later

    @classmethod
    def of(cls, ids: IdMap, table: pl.DataFrame | None) -> Catalogue:
        return cls(ids, pl.DataFrame() if table is None else table)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Results that others computed from this catalogue, valid as long as it exists."""
        return {}

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each attribute. Text is a category if a value occurs twice or more on
        average."""
        return {column.name: self._kind(column) for column in self.table.get_columns()}

    def _kind(self, column: pl.Series) -> Kind:
        if column.dtype == pl.Boolean:
            return "flag"
        if column.dtype.is_numeric():
            return "number"
        if column.dtype.is_temporal():
            return "time"
        if isinstance(column.dtype, pl.List):
            return "tags"
        named = column.name in (self.role("name"), self.role("picture"))
        values = column.drop_nulls()
        return "text" if named or 2 * values.n_unique() > len(values) else "category"

    def role(self, role: str) -> str | None:
        """The column with an item's name, picture, availability, arrival or expiry."""
        return column_called(self.table.columns, ROLES[role].split())

    def column(self, name: str) -> str:
        """The attribute of this name, or of the same name in other letters; else a ConfigError."""
        if name in self.table.columns:
            return name
        if (found := column_called(self.table.columns, [plain(name)])) is not None:
            return found
        known = ", ".join(map(repr, self.table.columns)) or "none; give a table of items (--items)"
        raise ConfigError(f"items have no attribute {name!r}; they have: {known}")

    @cached_property
    def name_column(self) -> str | None:
        """The column that names items everywhere: the one with that role, else a text column whose
        name contains a word for names, else the first text column."""
        texts = [
            column.name
            for column in self.table.get_columns()
            if column.dtype == pl.String and column.name != self.role("picture")
        ]
        named = [text for text in texts if any(word in text.lower() for word in NAMING)]
        return self.role("name") or next(iter(named + texts), None)

    def names_of(self, rows: Rows | slice) -> list[str]:
        """The names of these items; an item without a name has its id."""
        ids = self.ids.ids[rows].cast(pl.String)
        if self.name_column is None:
            return ids.to_list()
        names = self.table[self.name_column][rows].cast(pl.String)
        return [name or id_ for name, id_ in zip(names, ids, strict=True)]

    @cached_property
    def names(self) -> list[str]:
        """The name of each item."""
        return self.names_of(slice(None))

    def about(self, row: int) -> dict[str, Any]:
        """The attributes of an item, as values for JSON; missing ones are left out."""
        values = self.table.row(row, named=True) if self.table.width else {}
        return {name: as_json(value) for name, value in values.items() if value is not None}

    def available(self, now: datetime | None = None) -> NDArray[np.bool_]:
        """Which items may be shown: neither hidden nor unavailable nor, at `now`, expired.

        An item whose attribute is missing is available. (n_items,)
        """
        may = np.ones(len(self), dtype=bool) if self.hidden is None else ~self.hidden
        if (flag := self.role("available")) and self.kinds[flag] in ("flag", "number"):
            may &= self.table[flag].cast(pl.Boolean).fill_null(True).to_numpy()
        if (off := self.role("hidden")) and self.kinds[off] == "flag":
            may &= ~self.table[off].fill_null(False).to_numpy()
        if (expiry := self.role("expiry")) and self.kinds[expiry] == "time" and now is not None:
            may &= (self.table[expiry] > now.replace(tzinfo=None)).fill_null(True).to_numpy()
        return may

    def tags(
        self,
        columns: Sequence[str] | None = None,
        *,
        at_least: int = 1,
        among: NDArray[np.bool_] | None = None,
    ) -> TagMatrix:
        """Items by tags: of the given attributes, or of all categories and lists of tags.

        A tag of fewer than `at_least` items is left out. Tags are in the order of columns and, in
        each, of the alphabet. With `among`, a mask of items, only these decide which tags there
        are, so that the columns stay the same when other items are added.
        """
        some = self.table if among is None or not self.table.width else self.table.filter(among)
        kinds = {column.name: self._kind(column) for column in some.get_columns()}
        wanted = [name for name, kind in kinds.items() if kind in ("category", "tags")]
        if columns is not None:
            wanted = [self.column(name) for name in columns]
        rows, codes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        tags: list[tuple[str, str]] = []
        for name in wanted:
            pairs = self.values_of(name)
            counted = pairs if among is None else pairs.filter(among[pairs["row"].to_numpy()])
            counts = counted.group_by("tag").len().filter(pl.col("len") >= at_least).sort("tag")
            places = counts.select("tag").with_row_index("code")
            found = pairs.join(places, on="tag", how="inner")
            rows.append(found["row"].to_numpy().astype(np.int64))
            codes.append(found["code"].to_numpy().astype(np.int64) + len(tags))
            tags += [(name, tag) for tag in counts["tag"]]
        from scipy.sparse import csr_array  # imported here, since it takes long to load

        where = np.concatenate(rows), np.concatenate(codes)
        ones = np.ones(len(where[0]), dtype=np.float32)
        matrix = csr_array((ones, where), shape=(len(self), len(tags)))
        matrix.sort_indices()
        return TagMatrix(matrix, tags)

    def values_of(self, name: str) -> pl.DataFrame:
        """The distinct pairs of an item's row and a value as text."""
        column = self.table[name]
        frame = pl.DataFrame({"row": np.arange(len(column)), "tag": column})
        if self.kinds[name] == "tags":
            frame = frame.explode("tag")
        return frame.with_columns(pl.col("tag").cast(pl.String)).drop_nulls().unique()

    @cached_property
    def attributes(self) -> csr_array:
        """The tags of each item as a vector of length 1, or 0 where it has none. Their inner
        products measure how alike two items are. (n_items, n_tags)"""
        from scipy.sparse import csr_array

        matrix = self.tags().matrix
        counts = np.diff(matrix.indptr)
        lengths = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)
        return csr_array(
            (lengths.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape
        )

    @property
    def likeness(self) -> csr_array | None:
        """`attributes`, if any item has one."""
        return self.attributes if self.attributes.nnz else None

    def with_changes(self, changes: Iterable[ItemChange]) -> Catalogue:
        """The catalogue after these changes; later ones overwrite earlier ones.

        Old items keep their rows, new ones come after them, and a hidden one stays as a row that is
        not available. A value that does not fit its attribute is a DataError.
        """
        changes = list(changes)
        ids = self.ids.extended(list(dict.fromkeys(change.item for change in changes)))
        hidden = np.zeros(len(ids), dtype=bool)
        hidden[: len(self)] = False if self.hidden is None else self.hidden
        rows = ids.find([change.item for change in changes])
        changed: dict[int, dict[str, Any]] = {}
        for row, change in zip(rows.tolist(), changes, strict=True):
            hidden[row] = hidden[row] if change.hidden is None else change.hidden
            known = row < len(self) and self.table.width > 0 and not change.whole
            start = self.table.row(row, named=True) if known else {}
            before = {} if change.whole else changed.get(row, start)
            changed[row] = before | self._typed(change)
            if (flag := self.role("hidden")) and change.hidden is not None:
                changed[row][flag] = change.hidden
        return Catalogue(ids, self._replaced(changed, len(ids)), hidden if hidden.any() else None)

    def _typed(self, change: ItemChange) -> dict[str, Any]:
        typed = {}
        for given, value in change.attributes.items():
            own = "items_id" if given == "id" else given or "_"  # 'id' is the data set's own
            # A name of punctuation only cannot be compared.
            called = [plain(own)] if plain(own) else []
            name = column_called(self.table.columns, called) or own
            try:
                typed[name] = typed_value(self._known_kind(name), value)
            except (ValueError, TypeError, OverflowError, OSError):
                raise DataError(
                    f"item {shorten_id(change.item)}: {given} = {value!r} is not a "
                    f"{self._known_kind(name)}, unlike in the other items"
                ) from None
        return typed

    def _replaced(self, changed: Mapping[int, Mapping[str, Any]], n_items: int) -> pl.DataFrame:
        """The table with other rows in place of some, and more rows up to `n_items`."""
        if not changed:
            return self.table
        given = [name for row in changed.values() for name in row]
        names = list(dict.fromkeys([*self.table.columns, *given]))
        if not names:
            return self.table
        columns = {name: [row.get(name) for row in changed.values()] for name in names}
        new = pl.DataFrame([self._series(name, values) for name, values in columns.items()])
        old = self.table
        if not old.width:
            old = pl.DataFrame({names[0]: pl.Series([None] * len(self), dtype=new.dtypes[0])})
        whole = pl.concat([old, new], how="diagonal_relaxed").select(names)
        order = np.arange(n_items)
        order[list(changed)] = len(self) + np.arange(len(changed))
        return whole[order]

    def _known_kind(self, name: str) -> Kind | None:
        """The kind of an attribute that items have, or that its name implies."""
        if name in self.kinds and self.table[name].dtype != pl.Null:  # Null: it has no value so far
            return self.kinds[name]
        return kind_by_name(name)

    def _series(self, name: str, values: Sequence[Any]) -> pl.Series:
        try:
            return pl.Series(name, values, dtype=self._dtype(name, values), strict=False)
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            raise DataError(f"the attribute {name!r} has values of different kinds") from None

    def _dtype(self, name: str, values: Sequence[Any]) -> pl.DataType | type[pl.DataType]:
        kind = self._known_kind(name)
        if kind is None:  # an attribute that no item had so far
            # Polars would turn numbers beside texts into texts. Code that compares the numbers
            # would then fail later, in a request that did nothing wrong.
            kinds = sorted({kind_of_value(value) for value in values if value is not None})
            if len(kinds) > 1:
                raise DataError(
                    f"the attribute {name!r} has values of different kinds: {' and '.join(kinds)}"
                )
            kind = kinds[0] if kinds else None
        if kind == "flag":
            return pl.Boolean
        if kind in ("tags", "time"):
            return TAGS if kind == "tags" else TIMES
        if kind == "number":
            return pl.Float64 if any(isinstance(v, float) for v in values) else pl.Int64
        if kind is None:
            return pl.Null
        known = self.table[name].dtype if name in self.kinds else pl.Null
        return pl.String if known == pl.Null else known
