"""Open the bytes of a log: a file, gzip, Zstandard, a zip archive or standard input."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from ltocf.errors import DataError

GZIP, ZSTANDARD, ZIP, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PAR1"
STANDARD_INPUT = "-"
COMPRESSED = {".gz", ".zst", ".zstd"}
EXCEL = {".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"}
FOREIGN = EXCEL | {".json", ".jsonl", ".ndjson", ".pkl", ".npy", ".npz", ".arrow"}


class Workspace:
    """A temporary directory that is removed together with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ltocf-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._files = 0

    def new_file(self, name: str) -> Path:
        """A path of its own that ends in this name."""
        self._files += 1
        directory = self.path / str(self._files)
        directory.mkdir()
        return directory / Path(name).name


def kind_of(file: Path | PurePosixPath) -> str:
    """The suffix that tells the format, in lower case: '.csv' of 'Log.CSV.gz'."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def refuse_foreign(path: Path, label: str) -> None:
    """A DataError for a kind of file that is not read; it says how to convert the file."""
    kind = kind_of(path)
    if kind in EXCEL:
        raise DataError(
            f"{label}: Excel files are not read; save it as CSV, in Excel or with: python -c "
            f"\"import pandas; pandas.read_excel('{path.name}').to_csv('{path.stem}.csv', "
            'index=False)"'
        )
    if kind in FOREIGN:
        raise DataError(
            f"{label}: unknown kind of file {kind!r}; give .csv, .tsv or .parquet, "
            "text also compressed as .gz, .zst or .zip"
        )


def log_digest(source: object) -> str | None:
    """A digest by which a log is recognised: of its file, or of all files of its folder. None
    for a data frame and for standard input, which leave nothing to compare with."""
    if not isinstance(source, str | Path) or str(source) == STANDARD_INPUT:
        return None
    path = Path(source)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    whole = hashlib.sha256()
    for file in files:
        if file.is_file():
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            name = file.relative_to(path) if path.is_dir() else ""
            whole.update(f"{name} {file.stat().st_size} {digest}\n".encode())
    return whole.hexdigest()


def first_bytes(path: Path, count: int = 4) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


def is_compressed(path: Path) -> bool:
    return first_bytes(path).startswith((GZIP, ZSTANDARD))


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file's contents, decompressed; damage raises an OSError."""
    start = first_bytes(path)
    with path.open("rb") as file:
        if start.startswith(GZIP):
            with gzip.open(file) as stream:
                try:
                    yield stream  # type: ignore[misc]
                except (EOFError, zlib.error) as error:
                    raise OSError(str(error)) from None
        elif start.startswith(ZSTANDARD):
            with _open_zstandard(path, file) as stream:
                try:
                    yield stream
                except Exception as error:
                    # The package's own error, whose class is only there if the package is.
                    if type(error).__name__ != "ZstdError":
                        raise
                    raise OSError(str(error)) from None
        else:
            yield file


def _open_zstandard(path: Path, file: IO[bytes]) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        raise DataError(
            f"{path}: reading this Zstandard file needs a package (pip install zstandard); "
            "install it, or decompress the file first"
        ) from None
    return zstandard.ZstdDecompressor().stream_reader(file)


def spool_standard_input(workspace: Workspace) -> Path:
    """Standard input copied to a file, since a log is read more than once."""
    path = workspace.new_file("stdin")
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def member_names(path: Path) -> list[str]:
    """The files of a zip archive, in order of their names."""
    with _zip(path) as archive:
        return sorted(entry.filename for entry in archive.infolist() if not entry.is_dir())


def extract(path: Path, members: list[str], workspace: Workspace) -> list[Path]:
    """Copies of some files of a zip archive."""
    found = []
    with _zip(path) as archive:
        for member in members:
            found.append(workspace.new_file(member))
            with archive.open(member) as packed, found[-1].open("wb") as file:
                shutil.copyfileobj(packed, file)
    return found


@contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, RuntimeError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read as a zip archive ({error})") from None
