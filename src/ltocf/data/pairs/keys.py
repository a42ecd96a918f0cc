"""Pairs as single numbers: what is distinct among them, and what tells sets of them apart."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]


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
    order = np.argsort(key)  # not stable, which is twice as slow: callers must not care
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
