"""The text format of the NGCF and LightGCN data sets: one line a user, `user item item ...`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.interactions import IdMap, Interactions
from ltocf.errors import DataError

LONGEST_NUMBER = 18  # digits that always fit 64 bits
NEWLINE = ord("\n")


def read_lightgcn(path: str | Path, *, in_order: bool = False) -> Interactions:
    """The file's pairs. A user without items keeps their row. Ids are the file's numbers.

    With `in_order`, lines list items from the first to the last, and places serve as times.
    """
    text = _read_bytes(Path(path))
    starts = _token_starts(Path(path), text)
    numbers = np.fromstring(text.tobytes(), dtype=np.int64, sep=" ")
    line_ends = np.flatnonzero(text == NEWLINE)
    line_of_token = np.searchsorted(line_ends, starts)
    first = np.concatenate([[True], line_of_token[1:] != line_of_token[:-1]])
    user_of_token = numbers[first][np.cumsum(first) - 1]
    all_users, user_rows = np.unique(user_of_token, return_inverse=True)
    all_items, item_rows = np.unique(numbers[~first], return_inverse=True)
    places = np.flatnonzero(~first) if in_order else None
    return Interactions.build(
        user_rows[~first], item_rows, _id_map(all_users), _id_map(all_items), places
    )


def _read_bytes(path: Path) -> NDArray[np.uint8]:
    try:
        text = np.fromfile(path, dtype=np.uint8)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    return text


def _token_starts(path: Path, text: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where each number begins; anything else than numbers and blanks is a DataError."""
    digit = (text >= ord("0")) & (text <= ord("9"))
    blank = (text == ord(" ")) | (text == ord("\t")) | (text == ord("\r")) | (text == NEWLINE)
    if len(strange := np.flatnonzero(~(digit | blank))):
        raise _not_numbers(path, text, int(strange[0]))
    edges = np.diff(digit.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not len(starts):
        raise DataError(f"{path}: the file is empty; expected lines of 'user item item ...'")
    if len(long := np.flatnonzero(ends - starts > LONGEST_NUMBER)):
        raise _not_numbers(path, text, int(starts[long[0]]))
    return starts


def _not_numbers(path: Path, text: NDArray[np.uint8], position: int) -> DataError:
    """An error that names the line and the word at this byte."""
    line = int(np.count_nonzero(text[:position] == NEWLINE)) + 1
    window = text[max(position - 40, 0) : position + 40].tobytes()
    before = window[: min(position, 40)].split()
    glued = bool(before) and not window[: min(position, 40)][-1:].isspace()
    word = (before[-1] if glued else b"") + window[min(position, 40) :].split()[0]
    return DataError(
        f"{path}:{line}: expected 'user item item ...' in whole numbers, "
        f"got {word.decode(errors='replace')!r}"
    )


def _id_map(ids: NDArray[np.int64]) -> IdMap:
    return IdMap(pl.Series("id", ids))
