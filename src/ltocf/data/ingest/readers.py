"""Open a log: CSV, TSV or Parquet, compressed or not, a folder of parts, or a data frame.

Nothing is read yet: each part is a polars LazyFrame. Every column of a text file is text, so that
an id such as '007' stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from ltocf.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

LogSource: TypeAlias = "str | Path | pl.DataFrame | pl.LazyFrame | pd.DataFrame"

TEXT = {".csv", ".tsv", ".tab", ".txt", ".dat", ".log"}
PARQUET = {".parquet", ".pq"}
COMPRESSED = {".gz", ".zst", ".zstd"}
SEPARATORS = (",", "\t", ";", "|")
MISSING = ["", "NaN", "nan", "NULL", "null", "None"]  # what programs write into a CSV for no value


@dataclass(frozen=True)
class Part:
    """One table of a log. `label` names it in messages; `typed` unless all its columns are text."""

    label: str
    frame: pl.LazyFrame
    schema: pl.Schema
    typed: bool


def open_parts(source: LogSource, *, separator: str | None = None) -> list[Part]:
    """The log's tables, in order of their names; at least one."""
    if isinstance(source, str | Path):
        return [_open_file(path, separator) for path in _files(Path(source))]
    frame = source if isinstance(source, pl.DataFrame | pl.LazyFrame) else _from_pandas(source)
    with reading("the data frame"):
        return [Part("the data frame", frame.lazy(), frame.lazy().collect_schema(), typed=True)]


@contextmanager
def reading(label: str) -> Iterator[None]:
    """Turn what polars says of an unreadable file into one line of ours."""
    try:
        yield
    except pl.exceptions.NoDataError:
        raise DataError(f"{label}: the file is empty") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(getattr(error, "strerror", None) or error).strip().splitlines()[0]
        raise DataError(
            f"{label}: cannot be read ({reason[:200]}); is it damaged or half-written?"
        ) from None


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    if (path / "train.txt").is_file() and (path / "test.txt").is_file():
        raise DataError(
            f"{path}: train.txt and test.txt are split already; give the folder to 'ltocf train'"
        )
    files = sorted(file for file in path.rglob("*") if file.is_file() and _is_part(file, path))
    kinds = {_kind(file) in PARQUET for file in files}
    if not files:
        raise DataError(f"{path}: the folder holds no CSV, TSV or Parquet file")
    if len(kinds) > 1:
        raise DataError(f"{path}: the folder mixes Parquet and text files; keep one kind")
    return files


def _is_part(file: Path, folder: Path) -> bool:
    """Names that begin with a dot or an underscore are notes of other programs, by custom."""
    names = file.relative_to(folder).parts
    return _kind(file) in TEXT | PARQUET and not any(name[0] in "._" for name in names)


def _kind(file: Path) -> str:
    """The suffix that tells the format, in lower case: '.csv' of 'Log.CSV.gz'."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _open_file(path: Path, separator: str | None) -> Part:
    kind = _kind(path)
    if kind not in TEXT | PARQUET:
        raise DataError(
            f"{path}: unknown kind of file {kind!r}; give .csv, .tsv or .parquet, "
            "text also compressed as .gz or .zst"
        )
    with reading(str(path)):
        if kind in PARQUET:
            frame = pl.scan_parquet(path, glob=False)
        else:
            frame = _scan_text(path, separator or _guess_separator(path))
        return Part(str(path), frame, frame.collect_schema(), typed=kind in PARQUET)


def _scan_text(path: Path, separator: str, *, quote: str | None = '"') -> pl.LazyFrame:
    return pl.scan_csv(
        path,
        separator=separator,
        quote_char=quote,
        infer_schema=False,
        null_values=MISSING,
        glob=False,
    )


def _guess_separator(path: Path) -> str:
    """The one that the header holds most of; no header holds the ASCII unit separator."""
    header = _scan_text(path, "\x1f", quote=None).collect_schema().names()[0]
    return max(SEPARATORS, key=header.count)


def _from_pandas(frame: pd.DataFrame) -> pl.DataFrame:
    if not hasattr(frame, "columns"):
        raise DataError(
            f"cannot read a log from {type(frame).__name__!r}; "
            "give a path or a polars or pandas data frame"
        )
    columns = {}
    for name in frame.columns:
        try:
            columns[str(name)] = pl.from_pandas(frame[name])
        except ImportError:
            raise DataError(
                "reading pandas data frames needs pyarrow: pip install pyarrow"
            ) from None
        except Exception as error:  # pyarrow raises its own family, which may not be installed
            reason = str(error).splitlines()[0]
            raise DataError(
                f"column {str(name)!r} mixes types ({reason[:120]}); "
                "make it all text or all numbers"
            ) from None
    return pl.DataFrame(columns)
