"""Pairs as columns of equal length, in memory or on disk as a plain file of numbers each; and pairs
as single numbers, by which they are sorted, compared and fingerprinted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

Rows = NDArray[np.int32]
Arrays = dict[str, NDArray[Any]]  # of equal length, by name


class Columns(Protocol):
    """The interface of a bucket of pairs."""

    def __len__(self) -> int: ...
    def append(self, columns: Arrays) -> None: ...
    def replace(self, columns: Arrays) -> None: ...
    def read(self, names: tuple[str, ...] = ()) -> Arrays: ...


class ColumnArrays:
    """Columns in memory. The caller may change arrays that it has read."""

    def __init__(self, columns: Arrays) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def append(self, columns: Arrays) -> None:
        for name, column in columns.items():
            self._columns[name] = np.concatenate([self._columns[name], column])

    def replace(self, columns: Arrays) -> None:
        self._columns |= columns

    def read(self, names: tuple[str, ...] = ()) -> Arrays:
        return {name: self._columns[name].copy() for name in names or self._columns}


class ColumnFiles:
    """The files `path.NAME`, for each name of `types`."""

    def __init__(self, path: Path, types: Mapping[str, DTypeLike]) -> None:
        self._types = {name: np.dtype(type_) for name, type_ in types.items()}
        self._paths = {name: path.with_name(f"{path.name}.{name}") for name in types}

    def __len__(self) -> int:
        """The length of the columns."""
        name, path = next(iter(self._paths.items()))
        return path.stat().st_size // self._types[name].itemsize if path.exists() else 0

    def append(self, columns: Arrays) -> None:
        for name, column in columns.items():
            with self._paths[name].open("ab") as file:
                self._put(file, name, column)

    def replace(self, columns: Arrays) -> None:
        """Overwrite the named columns; the others stay."""
        for name, column in columns.items():
            with self._paths[name].open("wb") as file:
                self._put(file, name, column)

    def read(self, names: tuple[str, ...] = ()) -> Arrays:
        """The named columns, or all."""
        return {
            name: np.fromfile(self._paths[name], dtype=self._types[name])
            for name in names or self._types
        }

    def chunks(self, rows: int) -> Iterator[Arrays]:
        """The columns, some rows at a time."""
        for start in range(0, len(self), rows):
            yield {
                name: np.fromfile(path, type_, count=rows, offset=start * type_.itemsize)
                for (name, path), type_ in zip(
                    self._paths.items(), self._types.values(), strict=True
                )
            }

    def remove(self) -> None:
        for path in self._paths.values():
            path.unlink(missing_ok=True)

    def _put(self, file: BinaryIO, name: str, column: NDArray[Any]) -> None:
        file.write(np.ascontiguousarray(column, dtype=self._types[name]).data)


def pair_keys(
    users: NDArray[np.integer], items: NDArray[np.integer], n_items: int
) -> NDArray[np.int64]:
    """One number for each (user, item), ascending by user and then item."""
    # Rows are 32-bit. Before NumPy 2, an int32 array times an int64 scalar stays int32 and
    # overflows silently, so the array itself has to be 64-bit before it is multiplied.
    keys: NDArray[np.int64] = users.astype(np.int64) * max(n_items, 1) + items
    return keys


def distinct(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order that sorts the keys, and where in it each distinct key begins."""
    # Not stable, since that takes twice as long: callers must not rely on it.
    order = np.argsort(key)
    ordered = key[order]
    changes: NDArray[np.bool_] = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    return order, np.flatnonzero(changes[: len(key)])


class RowDigest:
    """A fingerprint of pairs that may come piece by piece."""

    def __init__(self) -> None:
        self.length = 0
        self._columns = [hashlib.sha256(), hashlib.sha256()]

    def update(self, users: Rows, items: Rows, weights: NDArray[np.float32] | None = None) -> None:
        self.length += len(users)
        if weights is not None and len(self._columns) == 2:
            self._columns.append(hashlib.sha256())
        columns = (users, items) if weights is None else (users, items, weights)
        for digest, column in zip(self._columns, columns, strict=True):
            digest.update(np.ascontiguousarray(column).data)

    def fingerprint(self, n_users: int, n_items: int) -> str:
        columns = " ".join(digest.hexdigest() for digest in self._columns)
        return hashlib.sha256(f"{n_users} {n_items} {columns}".encode()).hexdigest()[:16]
