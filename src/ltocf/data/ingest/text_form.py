"""How a text file is written: its encoding, its separator, and whether it has a header.

polars reads UTF-8 with separators of one character. Anything else is streamed into a temporary file
of that form first.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import polars as pl

from ltocf.data.ingest.byte_files import Workspace, is_compressed, open_bytes
from ltocf.errors import ConfigError, DataError

SEPARATORS = ("::", ",", "\t", ";", "|")
SPELLED = {r"\t": "\t", "tab": "\t", "space": " "}
STAND_IN = "\x1f"  # the ASCII unit separator, for a separator of several characters
CHUNK = 1 << 20
CONTROL = bytes(set(range(32)) - set(b"\t\r\n"))
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
NUMBER_OR_DATE = re.compile(r"\s*(-?\d+([.,]\d+)?(e[+-]?\d+)?|\d{1,4}[-./]\d\d?[-./]\d{1,4}.*)\s*")


@dataclass(frozen=True)
class TextOptions:
    """What the caller gives about a text file; fields that are None are detected."""

    separator: str | None = None
    header: bool | None = None
    encoding: str | None = None

    def check(self) -> None:
        if self.separator == "":
            raise ConfigError("the separator is empty; give at least one character")
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise ConfigError(
                f"unknown encoding {self.encoding!r}; choose one such as utf-8, utf-16 or latin-1"
            ) from None


@dataclass(frozen=True)
class TextForm:
    """A UTF-8 file with a separator of one character; `notes` report what is unusual."""

    path: Path
    separator: str
    quote: str | None
    header: bool
    first_row: tuple[str, ...]
    notes: tuple[str, ...]
    blank_lines: int = 0  # before the first row


def find_form(
    path: Path,
    label: str,
    options: TextOptions,
    workspace: Workspace,
    words: frozenset[str],
    *,
    quoted: bool = True,
) -> TextForm:
    """The form of a text file, rewritten if polars cannot read it as it is.

    A first row is a header unless it holds a number or a date and none of the `words`.
    """
    encoding = codecs.lookup(options.encoding).name if options.encoding else find_encoding(path)
    notes = [] if encoding == "utf-8" or options.encoding else [f"encoding: {encoding} (found)"]
    if encoding != "utf-8":
        path = _reencoded(path, label, encoding, workspace)
    line = _first_line(path)
    separator = SPELLED.get(options.separator or "", options.separator)
    if separator is None:
        separator = max(SEPARATORS, key=line.count)
        if len(separator) > 1:
            notes.append(f"separator: {separator!r} (found)")
    quote = '"' if quoted else None
    if len(separator) > 1:
        path = _reseparated(path, separator, workspace)
        line, separator, quote = line.replace(separator, STAND_IN), STAND_IN, None
    elif quoted and _has_loose_quotes(path, separator):
        path = _with_quoted_quotes(path, separator, workspace)
        notes.append("quotes: some stand inside a field, and are kept as part of it (found)")
        line = _first_line(path)
    row = tuple(_cells(line, separator, quote))
    header = options.header
    if header is None:
        header = not _is_data(row, words)
        if not header:
            notes.append("header: none (found: the first row holds numbers and no column's name)")
    return TextForm(path, separator, quote, header, row, tuple(notes), _blank_lines(path))


def find_encoding(path: Path) -> str:
    """UTF-8 if all of the file is that (of a compressed one, its first megabyte), or a guess."""
    with open_bytes(path) as file:
        start = file.read(CHUNK)
        for bom, encoding in BOMS.items():
            if start.startswith(bom):
                return encoding
        if b"\0" in start:
            return _utf16_or_refuse(path, start)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            decoder.decode(start)
            if not is_compressed(path):
                for chunk in iter(lambda: file.read(CHUNK), b""):
                    decoder.decode(chunk)
                decoder.decode(b"", final=True)
            return "utf-8"
        except UnicodeDecodeError:
            pass
    return "cp1252" if _has_windows_characters(path) else "latin-1"


def _utf16_or_refuse(path: Path, start: bytes) -> str:
    """Text of separators and digits in UTF-16 has letters in one half of its bytes, and in the
    other one many zeros."""
    halves = {"utf-16-le": (start[0::2], start[1::2]), "utf-16-be": (start[1::2], start[0::2])}
    for encoding, (letters, high) in halves.items():
        written = letters.translate(None, delete=CONTROL)
        if high.count(0) > 0.2 * len(high) and len(written) > 0.95 * len(letters):
            return encoding
    raise DataError(
        f"{path}: is neither text nor Parquet; give a log as CSV, TSV, Parquet or a zip of them"
    )


def _has_windows_characters(path: Path) -> bool:
    """Whether there are bytes that are printable in cp1252 and control characters in latin-1."""
    undefined = frozenset(b"\x81\x8d\x8f\x90\x9d")
    found = False
    with open_bytes(path) as file:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            letters = {byte for byte in set(chunk) if 0x80 <= byte <= 0x9F}
            if letters & undefined:
                return False
            found = found or bool(letters)
    return found


def _reencoded(path: Path, label: str, encoding: str, workspace: Workspace) -> Path:
    out = workspace.new_file(path.name)
    try:
        with open_bytes(path) as file, out.open("wb") as target:
            text = io.TextIOWrapper(file, encoding=encoding, newline="")
            for chunk in iter(lambda: text.read(CHUNK), ""):
                target.write(chunk.encode())
    except UnicodeError:
        raise DataError(
            f"{label}: is not written in {encoding}; name another with encoding= (--encoding)"
        ) from None
    return out


def _reseparated(path: Path, separator: str, workspace: Workspace) -> Path:
    out = workspace.new_file(path.name)
    with open_bytes(path) as file, out.open("wb") as target:
        for lines in _whole_lines(file):
            target.write(lines.replace(separator.encode(), STAND_IN.encode()))
    return out


def _has_loose_quotes(path: Path, separator: str) -> bool:
    """Whether a quotation mark stands between two ordinary characters, as in 5" vinyl."""
    mark = re.escape(separator.encode())
    loose = re.compile(rb'[^"\r\n' + mark + rb']"[^"\r\n' + mark + rb"]")
    with open_bytes(path) as file:
        return any(b'"' in lines and loose.search(lines) for lines in _whole_lines(file))


def _with_quoted_quotes(path: Path, separator: str, workspace: Workspace) -> Path:
    """The same fields, with quotation marks inside a field doubled, as CSV requires."""
    mark = re.escape(separator.encode())
    field = re.compile(
        rb'(?P<whole>"(?:[^"]|"")*"(?=[\r\n' + mark + rb"]|\Z))|(?P<loose>[^\r\n" + mark + rb"]+)"
    )

    def quoted(found: re.Match[bytes]) -> bytes:
        loose = found["loose"]
        if loose is None or b'"' not in loose:
            return found[0]
        return b'"' + loose.replace(b'"', b'""') + b'"'

    out = workspace.new_file(path.name)
    with open_bytes(path) as file, out.open("wb") as target:
        for lines in _whole_lines(file):
            target.write(field.sub(quoted, lines))
    return out


def _blank_lines(path: Path) -> int:
    """The number of empty lines before the first row; polars skips them only if it looks for a
    header itself."""
    with open_bytes(path) as file:
        start = file.read(CHUNK).removeprefix(codecs.BOM_UTF8)
    blank = start[: len(start) - len(start.lstrip(b"\r\n"))]
    return blank.count(b"\n") or blank.count(b"\r")


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """The contents in pieces that end with a line, so that no separator is cut in two."""
    rest = b""
    for chunk in iter(lambda: file.read(CHUNK), b""):
        lines, newline, after = chunk.rpartition(b"\n")
        if newline:
            yield rest + lines + newline
            rest = after
        else:
            rest += chunk
    yield rest


def _first_line(path: Path) -> str:
    lines = pl.scan_csv(
        path, separator=STAND_IN, quote_char=None, infer_schema=False, glob=False, has_header=True
    )
    return lines.collect_schema().names()[0]


def _cells(line: str, separator: str, quote: str | None) -> list[str]:
    if quote is None:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, quotechar=quote), [])
    except csv.Error:  # a field longer than the limit cannot be a column's name
        return line.split(separator)


def _is_data(row: tuple[str, ...], words: frozenset[str]) -> bool:
    if any(plain(cell) in words for cell in row):
        return False
    return any(NUMBER_OR_DATE.fullmatch(cell) for cell in row)


def plain(name: str) -> str:
    """A column's name without case, accents and punctuation: 'User-ID' is 'userid'."""
    letters = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in letters if letter.isalnum())
