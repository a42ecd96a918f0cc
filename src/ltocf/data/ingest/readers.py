"""Open a log: CSV and its kin, Parquet, compressed or not, a folder or zip of them, a data frame.

Nothing is read yet: each table is a polars LazyFrame. Every column of a text file is text, so that
an id such as '007' stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from ltocf.data.ingest import byte_files
from ltocf.data.ingest.byte_files import (
    FOREIGN,
    STANDARD_INPUT,
    Workspace,
    first_bytes,
    kind_of,
    refuse_foreign,
)
from ltocf.data.ingest.movielens import COLUMNS, UNQUOTED, find_movielens
from ltocf.data.ingest.roles import WORDS
from ltocf.data.ingest.text_form import TextOptions, find_form
from ltocf.data.parquet_trial import refuse_unreadable
from ltocf.errors import DataError
from ltocf.machine.threads import refuse_forked

if TYPE_CHECKING:
    import pandas as pd

LogSource: TypeAlias = "str | Path | pl.DataFrame | pl.LazyFrame | pd.DataFrame"

TEXT = {".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".item", ".log"}
PARQUET = {".parquet", ".pq"}
MISSING = ["", "NaN", "nan", "NULL", "null", "None"]  # ways in which programs write a missing value
EXTRA = "\x1fextra"  # fields beyond the last column


@dataclass(frozen=True)
class Table:
    """One table of a log. `label` names it in messages; `typed` unless all its columns are text."""

    label: str
    frame: pl.LazyFrame
    schema: pl.Schema
    typed: bool
    header: bool = True
    notes: tuple[str, ...] = ()
    workspace: Workspace | None = None  # holds what the frame reads, if it is temporary


@dataclass(frozen=True)
class OpenLog:
    """A log's tables, at least one, and the table of items that came with it, if one did."""

    tables: list[Table]
    items: Path | None = None
    workspace: Workspace | None = None


def open_log(
    source: LogSource,
    options: TextOptions | None = None,
    *,
    keep_extra: bool = False,
    columns: Iterable[str | None] | None = None,
) -> OpenLog:
    """The log's tables, in order of their names. `keep_extra` adds a column EXTRA to text with
    the field beyond the last column, which is an error otherwise. `columns` are those that will be
    read, by name or number, beside those with the usual names; none: all."""
    refuse_forked()
    options = options or TextOptions()
    options.check()
    if not isinstance(source, str | Path):
        return OpenLog([_frame_table(source)])
    workspace = Workspace()
    with reading(str(source)):
        files, items = _files(source, workspace)
        parquet = {path: label for path, label in files if _is_parquet(path)}
    if parquet:
        refuse_unreadable(parquet, None if columns is None else [*columns, *WORDS])
    tables = []
    for path, label in files:
        with reading(label):
            tables.append(_open_file(path, label, options, workspace, keep_extra))
    return OpenLog(tables, items, workspace)


@contextmanager
def reading(label: str) -> Iterator[None]:
    """Turn polars' error about an unreadable file into one line."""
    try:
        yield
    except pl.exceptions.NoDataError:
        raise DataError(f"{label}: the file is empty") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = (str(getattr(error, "strerror", None) or error).strip() or "unknown").splitlines()[
            0
        ]
        raise DataError(
            f"{label}: cannot be read ({reason[:200]}); is it damaged or half-written?"
        ) from None


def _files(source: str | Path, workspace: Workspace) -> tuple[list[tuple[Path, str]], Path | None]:
    """The files to read, each with its name for messages, and the table of items beside them."""
    if str(source) == STANDARD_INPUT:
        return [(byte_files.spool_standard_input(workspace), "standard input")], None
    path = Path(source)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if path.is_dir():
        return _files_of_folder(path)
    if first_bytes(path) == byte_files.ZIP and kind_of(path) not in FOREIGN:
        return _files_of_zip(path, workspace)
    return [(path, str(path))], None


def _files_of_folder(path: Path) -> tuple[list[tuple[Path, str]], Path | None]:
    if (path / "train.txt").is_file() and (path / "test.txt").is_file():
        raise DataError(
            f"{path}: train.txt and test.txt are already split; give the folder to 'ltocf train'"
        )
    inside = sorted(file for file in path.rglob("*") if file.is_file())
    if found := find_movielens(inside):
        return [(found[0], str(found[0]))], found[1]
    files = [file for file in inside if _is_part(PurePosixPath(file.relative_to(path)))]
    _refuse_mixture(path, [kind_of(file) for file in files])
    return [(file, str(file)) for file in files], None


def _files_of_zip(path: Path, workspace: Workspace) -> tuple[list[tuple[Path, str]], Path | None]:
    members = [PurePosixPath(name) for name in byte_files.member_names(path)]
    if found := find_movielens(members):
        log, items = byte_files.extract(path, [str(member) for member in found], workspace)
        return [(log, f"{path}:{found[0]}")], items
    chosen = [member for member in members if _is_part(member)]
    _refuse_mixture(path, [kind_of(member) for member in chosen])
    files = byte_files.extract(path, [str(member) for member in chosen], workspace)
    return [(file, f"{path}:{name}") for file, name in zip(files, chosen, strict=True)], None


def _refuse_mixture(path: Path, kinds: list[str]) -> None:
    if not kinds:
        raise DataError(f"{path}: holds no CSV, TSV or Parquet file")
    if len({kind in PARQUET for kind in kinds}) > 1:
        raise DataError(f"{path}: mixes Parquet and text files; keep one kind")


def _is_part(file: PurePosixPath) -> bool:
    """Whether the file holds data: by convention, files whose names begin with a dot or an
    underscore are notes of other programs."""
    known = kind_of(file) in TEXT | PARQUET or file.name.startswith("part-")
    return known and not any(name[0] in "._" for name in file.parts)


def _is_parquet(path: Path) -> bool:
    return kind_of(path) in PARQUET or first_bytes(path) == byte_files.PARQUET


def _open_file(
    path: Path, label: str, options: TextOptions, workspace: Workspace, keep_extra: bool
) -> Table:
    refuse_foreign(path, label)
    if _is_parquet(path):
        frame = pl.scan_parquet(path, glob=False)
        return Table(label, frame, frame.collect_schema(), typed=True, workspace=workspace)
    return _open_text(path, label, options, workspace, keep_extra)


def _open_text(
    path: Path, label: str, options: TextOptions, workspace: Workspace, keep_extra: bool
) -> Table:
    quoted = path.name not in UNQUOTED
    form = find_form(path, label, options, workspace, WORDS, quoted=quoted)
    names = () if form.header else COLUMNS.get(path.name, ())
    width = len(form.first_row)
    columns = [names[n] if n < len(names) else str(n + 1) for n in range(width)]
    frame = _scan(form.path, form.separator, form.quote, form.header, columns)
    if keep_extra:
        columns = frame.collect_schema().names()
        columns = [*columns, EXTRA]
        form_of = form.path, form.separator, form.quote, form.header
        frame = _scan(*form_of, columns, form.blank_lines)
    if names:
        frame = frame.select(names[:width], *([EXTRA] if keep_extra else []))
    schema = frame.collect_schema()
    return Table(label, frame, schema, False, form.header, form.notes, workspace)


def _scan(
    path: Path,
    separator: str,
    quote: str | None,
    header: bool,
    columns: list[str],
    blank_lines: int = 0,
) -> pl.LazyFrame:
    """With a header the columns are its own, unless the field beyond them is wanted too."""
    extra = columns[-1] == EXTRA
    own_names = header and not extra
    return pl.scan_csv(
        path,
        separator=separator,
        quote_char=quote,
        infer_schema=False,
        schema=None if own_names else dict.fromkeys(columns, pl.String),
        has_header=own_names,
        skip_lines=blank_lines + 1 if header and extra else 0,
        truncate_ragged_lines=extra,
        missing_columns="insert" if extra else None,
        extra_columns="ignore" if extra else None,
        null_values=MISSING,
        glob=False,
    )


def _frame_table(source: pl.DataFrame | pl.LazyFrame | pd.DataFrame) -> Table:
    frame = source if isinstance(source, pl.DataFrame | pl.LazyFrame) else _from_pandas(source)
    with reading("the data frame"):
        return Table("the data frame", frame.lazy(), frame.lazy().collect_schema(), typed=True)


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
