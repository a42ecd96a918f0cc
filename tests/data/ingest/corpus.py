"""Bad and odd logs, each with what it must give: its pairs, or words of the one line of error."""

from __future__ import annotations

import gzip
import io
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

Pairs = set[tuple[object, object]]
BOTH: Pairs = {("a", "x"), ("b", "y")}
NUMBERS: Pairs = {(1, 10), (2, 20)}


@dataclass(frozen=True)
class Case:
    """A file (or several, in a folder) and what reading it with `options` gives."""

    content: bytes | dict[str, bytes]
    pairs: Pairs | None = None
    error: str = ""  # a regular expression, where there are no pairs
    name: str = "log.csv"
    options: dict[str, Any] = field(default_factory=dict)
    times: list[int] | None = None  # in the order of the pairs

    def write(self, directory: Path) -> Path:
        path = directory / self.name
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
            return path
        for name, content in self.content.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        return path


def text(body: str, *, header: str = "user,item", encoding: str = "utf-8") -> bytes:
    return f"{header}\n{body}".encode(encoding)


def parquet(frame: pl.DataFrame, **options: Any) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out, **options)
    return out.getvalue()


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return out.getvalue()


TWO = "a,x\nb,y\n"
PLAIN = text(TWO)
TYPED = pl.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
LONG = "z" * 10_000_000


def timed(*moments: str) -> bytes:
    rows = "".join(f"u{n},i,{moment}\n" for n, moment in enumerate(moments))
    return text(rows, header="user,item,time")


def dated(first: str, second: str, apart: int, **more: Any) -> Case:
    """Two times that are so many microseconds apart."""
    pairs: Pairs = {("u0", "i"), ("u1", "i")}
    return Case(timed(first, second), pairs, times=[0, apart], **more)


DAY = 86_400_000_000
CASES: dict[str, Case] = {
    # ends of lines, and of the file
    "plain": Case(PLAIN, BOTH),
    "no newline at the end": Case(PLAIN[:-1], BOTH),
    "many newlines at the end": Case(PLAIN + b"\n\n", error="row 3: no user id"),
    "CRLF": Case(PLAIN.replace(b"\n", b"\r\n"), BOTH),
    "CRLF without the last": Case(PLAIN.replace(b"\n", b"\r\n")[:-2], BOTH),
    "an empty line within": Case(text("a,x\n\nb,y\n"), error="row 2: no user id"),
    "one row": Case(text("a,x\n"), {("a", "x")}),
    "one user": Case(text("a,x\na,y\n"), {("a", "x"), ("a", "y")}),
    "one item": Case(text("a,x\nb,x\n"), {("a", "x"), ("b", "x")}),
    "the same row again": Case(text("a,x\na,x\na,x\n"), {("a", "x")}),
    # nothing
    "empty": Case(b"", error="the file is empty"),
    "one newline": Case(b"\n", error="log.csv: "),
    "spaces": Case(b"   \n  \n", error="log.csv: "),
    "a header alone": Case(b"user,item\n", error="has no rows"),
    "a header without newline": Case(b"user,item", error="has no rows"),
    # encodings
    "UTF-8 with a mark": Case(b"\xef\xbb\xbf" + PLAIN, BOTH),
    "UTF-16 with a mark": Case(PLAIN.decode().encode("utf-16"), BOTH),
    "UTF-16 big-endian": Case(b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"), BOTH),
    "UTF-16 without a mark": Case(PLAIN.decode().encode("utf-16-le"), BOTH),
    "latin-1": Case(text("é,x\nb,y\n", encoding="latin-1"), {("é", "x"), ("b", "y")}),
    "cp1252": Case(text("“q”,x\nb,y\n", encoding="cp1252"), {("“q”", "x"), ("b", "y")}),
    "greek, named": Case(
        text("β,x\n", encoding="iso8859-7"), {("β", "x")}, options={"encoding": "iso8859-7"}
    ),
    "an unknown encoding": Case(PLAIN, error="unknown encoding", options={"encoding": "klingon"}),
    "emoji": Case(text("🎷,x\nb,🦊\n"), {("🎷", "x"), ("b", "🦊")}),
    "composed and decomposed": Case(text("é,x\ne\u0301,x\n"), {("é", "x"), ("e\u0301", "x")}),
    "a zero byte in an id": Case(text("a\0b,x\n"), error="neither text nor Parquet"),
    # separators
    "tabs": Case(b"user\titem\na\tx\nb\ty\n", BOTH, name="log.tsv"),
    "tabs in a .csv": Case(b"user\titem\na\tx\nb\ty\n", BOTH),
    "semicolons": Case(b"user;item\na;x\nb;y\n", BOTH),
    "bars": Case(b"user|item\na|x\nb|y\n", BOTH),
    "double colons": Case(b"user::item\na::x\nb::y\n", BOTH),
    "MovieLens": Case(b"1::10::5::97\n2::20::3::98\n", NUMBERS, name="ratings.dat"),
    "spaces, named": Case(b"user item\na x\nb y\n", BOTH, options={"separator": " "}),
    "an empty separator": Case(PLAIN, error="separator is empty", options={"separator": ""}),
    "commas within tabs": Case(b"user\titem\na,1\tx\nb\ty,2\n", {("a,1", "x"), ("b", "y,2")}),
    "the wrong separator": Case(PLAIN, error="cannot guess", options={"separator": ";"}),
    "one column": Case(b"user\na\nb\n", error="cannot guess the item column"),
    # quotes
    "quoted ids": Case(text('"a","x"\n"b","y"\n'), BOTH),
    "a comma in quotes": Case(text('"a,1",x\n'), {("a,1", "x")}),
    "a doubled quote": Case(text('"say ""hi""",x\n'), {('say "hi"', "x")}),
    "a newline in quotes": Case(text('"a\nb",x\nb,y\n'), {("a\nb", "x"), ("b", "y")}),
    "a quote that never ends": Case(text('"a,x\nb,y\n'), error="log.csv: "),
    "a quote within an id": Case(text('a"b,x\nb,y\n'), {('a"b', "x"), ("b", "y")}),
    "single quotes": Case(text("'a',x\n"), {("'a'", "x")}),
    # headers
    "spaces around the names": Case(b" User ID , Item ID \na,x\nb,y\n", BOTH),
    "names in upper case": Case(b"USER_ID,ITEM_ID\na,x\nb,y\n", BOTH),
    "no header": Case(b"1,10\n2,20\n", NUMBERS, options={"user": "1", "item": "2"}),
    "a doubled header": Case(b"user,item,user\na,x,c\nb,y,d\n", BOTH),
    "an empty name": Case(b"user,item,\na,x,1\nb,y,2\n", BOTH),
    "strange names": Case(b"foo,bar\na,x\n", error="cannot guess the user column.*'foo', 'bar'"),
    "strange names, told": Case(
        b"foo,bar\na,x\nb,y\n", BOTH, options={"user": "foo", "item": "bar"}
    ),
    "a name that is not there": Case(PLAIN, error="no column 'who'", options={"user": "who"}),
    "one column twice": Case(PLAIN, error="two roles", options={"user": "item", "item": "item"}),
    "a comment above": Case(b"# made by us\nuser,item\na,x\n", error="log.csv: "),
    "the header again within": Case(text("a,x\nuser,item\nb,y\n"), BOTH | {("user", "item")}),
    "Excel's sep line": Case(b"sep=;\r\nuser;item\r\na;x\r\n", error="log.csv: "),
    "Excel's export": Case(
        b"\xef\xbb\xbfuser;item;time\r\na;x;31.01.2024\r\nb;y;01.02.2024\r\n", BOTH
    ),
    # widths
    "a row too short": Case(text("a\nb,y\n"), error="row 1: no item id"),
    "a row too long": Case(text("a,x,1\nb,y\n"), error="log.csv: cannot be read"),
    "a row too long, skipped": Case(text("a,x,1\nb,y\n"), {("b", "y")}, options={"skip_bad": True}),
    # ids
    "no user": Case(text(",x\nb,y\n"), error="row 1: no user id"),
    "no item": Case(text("a,\nb,y\n"), error="row 1: no item id"),
    "NaN as an id": Case(text("NaN,x\nb,y\n"), error="row 1: no user id"),
    "null as an id": Case(text("a,null\n"), error="row 1: no item id"),
    "None as an id, skipped": Case(text("None,x\nb,y\n"), {("b", "y")}, options={"skip_bad": True}),
    "whole numbers": Case(text("1,10\n2,20\n"), NUMBERS),
    "leading zeros": Case(text("001,10\n2,20\n"), {("001", 10), ("2", 20)}),
    "numbers and words": Case(text("1,x\nb,y\n"), {("1", "x"), ("b", "y")}),
    "negative numbers": Case(text("-1,10\n2,20\n"), {(-1, 10), (2, 20)}),
    "a plus sign": Case(text("+1,10\n"), {("+1", 10)}),
    "beyond 2^63": Case(text(f"{2**63},10\n2,20\n"), {(str(2**63), 10), ("2", 20)}),
    "2^63 - 1": Case(text(f"{2**63 - 1},10\n"), {(2**63 - 1, 10)}),
    "26 digits": Case(text("1" * 26 + ",x\n"), {("1" * 26, "x")}),
    "spaces matter": Case(text(" a,x\na ,x\n"), {(" a", "x"), ("a ", "x")}),
    "spaces after each separator": Case(b"user, item\na, x\nb, y\n", BOTH),
    "floats": Case(text("1.5,x\n1.50,x\n"), {("1.5", "x"), ("1.50", "x")}),
    "10 MB": Case(text(f"{LONG},x\nb,y\n"), {(LONG, "x"), ("b", "y")}),
    "a formula": Case(text("=1+1,x\n"), {("=1+1", "x")}),
    "markup": Case(text("[red]a[/],x\n"), {("[red]a[/]", "x")}),
    # times
    "seconds": Case(timed("100", "200"), {("u0", "i"), ("u1", "i")}, times=[0, 100]),
    "fractions": dated("100.5", "101.25", 750_000),
    "days": dated("2024-01-31", "2024-02-01", DAY),
    "minutes": dated("2024-01-31 10:00", "2024-01-31 10:01", 60_000_000),
    "seconds in a day": dated("2024-01-31 10:00:00", "2024-01-31 10:00:01.5", 1_500_000),
    "ISO": dated("2024-01-31T10:00:00", "2024-01-31T10:00:01", 1_000_000),
    "ISO with Z": dated("2024-01-31T10:00:00Z", "2024-01-31T10:00:01Z", 1_000_000),
    "time zones": dated("2024-01-31T10:00:00+02:00", "2024-01-31T10:00:00+01:00", 3_600_000_000),
    "slashes": dated("2024/01/31", "2024/02/01", DAY),
    "dots": dated("31.01.2024", "01.02.2024", DAY),
    "before 1970": dated("1969-12-31", "1970-01-01", DAY),
    "two forms of time": Case(timed("2024-01-31", "31.01.2024"), error="not written like"),
    "a word for a time": Case(timed("yesterday", "today"), error="cannot read 'yesterday'"),
    "no time": Case(timed("1", ""), error="row 2: no time"),
    "an infinite time": Case(timed("1.0", "inf"), error="time 'inf'"),
    "a time beyond 2^63": Case(timed("1", str(2**64)), error="row 2: time"),
    # ratings
    "below the threshold": Case(
        text("a,x,5\nb,y,1\n", header="user,item,rating"), {("a", "x")}, options={"threshold": 3}
    ),
    "all below": Case(
        text("a,x,1\n", header="user,item,rating"),
        error="reaches the threshold 3",
        options={"threshold": 3},
    ),
    "a rating that is a word": Case(
        text("a,x,good\n", header="user,item,rating"),
        error="'good' is not a number",
        options={"threshold": 3},
    ),
    "infinite ratings": Case(
        text("a,x,inf\nb,y,-inf\n", header="user,item,rating"),
        {("a", "x")},
        options={"threshold": 3},
    ),
    "no rating at all": Case(PLAIN, error="guess the rating", options={"threshold": 3}),
    "weights of nothing": Case(
        text("a,x,0\n", header="user,item,plays"),
        error="row 1: ",
        options={"weight": "plays"},
    ),
    "infinite weights": Case(
        text("a,x,inf\n", header="user,item,plays"), error="row 1: ", options={"weight": "plays"}
    ),
    # other files
    "gzip": Case(gzip.compress(PLAIN), BOTH, name="log.csv.gz"),
    "gzip by another name": Case(gzip.compress(PLAIN), BOTH, name="log.csv"),
    "gzip cut short": Case(gzip.compress(PLAIN)[:-9], error="log.csv.gz: ", name="log.csv.gz"),
    "gzip that is none": Case(b"\x1f\x8bnothing", error="log.csv.gz: ", name="log.csv.gz"),
    "zstd that is none": Case(b"\x28\xb5\x2f\xfdno", error="log.csv.zst: ", name="log.csv.zst"),
    "zip": Case(zipped(log_csv=PLAIN), BOTH, name="log.zip"),
    "zip of nothing": Case(zipped(), error="log.zip: ", name="log.zip"),
    "zip cut short": Case(zipped(log_csv=PLAIN)[:-9], error="log.zip: ", name="log.zip"),
    "Parquet": Case(parquet(TYPED), BOTH, name="log.parquet"),
    "Parquet named .csv": Case(parquet(TYPED), BOTH),
    "Parquet cut short": Case(parquet(TYPED)[:-9], error="log.parquet: ", name="log.parquet"),
    "Parquet of zeros": Case(b"PAR1" + bytes(99), error="log.parquet: ", name="log.parquet"),
    "Parquet without rows": Case(parquet(TYPED.clear()), error="has no rows", name="a.parquet"),
    "Parquet with nulls": Case(
        parquet(pl.DataFrame({"user": ["a", None], "item": ["x", "y"]})),
        error="row 2: no user id",
        name="log.parquet",
    ),
    "Parquet with lists for ids": Case(
        parquet(pl.DataFrame({"user": [["a"]], "item": ["x"]})),
        error="ids must be text or whole numbers",
        name="log.parquet",
    ),
    "Parquet with booleans": Case(
        parquet(pl.DataFrame({"user": [True], "item": ["x"]})),
        error="ids must be text",
        name="log.parquet",
    ),
    "Parquet with fractions": Case(
        parquet(pl.DataFrame({"user": [1.5], "item": ["x"]})),
        error="row 1: ",
        name="log.parquet",
    ),
    "Parquet of 64 unsigned bits": Case(
        parquet(
            pl.DataFrame({"user": [2**64 - 1], "item": [1]}, schema_overrides={"user": pl.UInt64})
        ),
        {(str(2**64 - 1), 1)},
        name="log.parquet",
    ),
    "a folder": Case({"1.csv": PLAIN, "2.csv": text("c,z\n")}, BOTH | {("c", "z")}, name="logs"),
    "a folder of two kinds": Case(
        {"1.csv": PLAIN, "2.parquet": parquet(TYPED)}, error="mixes Parquet and text", name="logs"
    ),
    "a folder whose parts differ": Case(
        {"1.csv": PLAIN, "2.csv": b"foo,bar\n1,2\n"}, error=r"2\.csv: no column 'user'", name="logs"
    ),
    "a folder of nothing": Case({".hidden": b""}, error="holds no CSV", name="logs"),
    "a spreadsheet": Case(b"PK\x03\x04...", error="Excel files are not read", name="log.xlsx"),
    "a picture": Case(b"\x89PNG\r\n\x1a\n" + bytes(50), error="log.csv: "),
    "JSON lines": Case(b'{"user": 1}\n', error="unknown kind of file", name="log.jsonl"),
}
