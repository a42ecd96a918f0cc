"""Read a Parquet file that we did not write in a separate process first, since some damage crashes
the reader.

Polars checks a file while it reads it, and for some damage panics, with a trace on standard error,
or asks for more memory than there is, which ends the process. Files with a digest of ours need no
trial.
"""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from ltocf.errors import DataError

READY = "ready"
LEAST_SECONDS, BYTES_PER_SECOND = 120, 2_000_000


def refuse_unreadable(
    labels: Mapping[Path, str], columns: Iterable[str | None] | None = None
) -> None:
    """A DataError for the first file that cannot be read; the message has its label.

    If `columns` are given (by name, number, or name without case and punctuation), only these are
    tried.
    """
    paths = list(labels)
    request = {"paths": list(map(str, paths)), "columns": columns and list(filter(None, columns))}
    seconds = LEAST_SECONDS + sum(path.stat().st_size for path in paths) / BYTES_PER_SECOND
    try:
        ended = subprocess.run(
            # Without -P, a polars.py in the working directory would be run.
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            text=True,
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"{labels[paths[0]]}: cannot be read in {seconds:.0f} seconds") from None
    ready, *lines = ended.stdout.splitlines() or [""]
    if ready != READY:
        return  # no process can be started, as in a program that embeds Python
    if len(lines) < len(paths):  # it crashed while reading a file
        culprit = labels[paths[len(lines)]]
        raise DataError(f"{culprit}: cannot be read (it crashes the Parquet reader); it is damaged")
    for label, reason in zip(labels.values(), map(json.loads, lines), strict=True):
        if reason is not None:
            raise DataError(f"{label}: cannot be read ({reason}); is it damaged or half-written?")


def _try(path: str, columns: list[str] | None) -> str | None:
    """Why the file cannot be read, or None. Nothing of it is kept."""
    try:
        frame = pl.scan_parquet(path, glob=False)
        names = frame.collect_schema().names()
        wanted = [
            name
            for number, name in enumerate(names, 1)
            if columns is None or not {name, str(number), _plain(name)}.isdisjoint(columns)
        ]
        for _ in frame.select(wanted).collect_batches(engine="streaming"):
            pass
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return None


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in letters if letter.isalnum())


if __name__ == "__main__":
    print(READY, flush=True)
    asked = json.load(sys.stdin)
    for name in asked["paths"]:
        print(json.dumps(_try(name, asked["columns"])), flush=True)
