"""What a file or directory holds, without what differs from one undisturbed run to the next."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl

# They hold seconds or dates, or depend on what thread was first.
TIMED = {"curves.png", "export.json", "digests.json", "study.db", "items.hnsw"}


def contents(path: Path) -> dict[str, str]:
    """A digest of each file, by its name within `path`."""
    if path.is_file():
        return {path.name: _digest(path)}
    return {
        str(file.relative_to(path)): _digest(file)
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in TIMED
    }


def leftovers(directory: Path) -> list[str]:
    """Files that were meant to be temporary."""
    return [
        str(file.relative_to(directory))
        for file in directory.rglob("*")
        if file.name.startswith(".") or file.name.endswith(".parts") or file.name == "work"
    ]


def _digest(file: Path) -> str:
    if file.suffix == ".parquet":
        text = repr(pl.read_parquet(file).to_dicts()).encode()
    elif file.suffix == ".jsonl":
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        text = repr([{k: v for k, v in line.items() if k != "seconds"} for line in lines]).encode()
    else:
        text = file.read_bytes()
    return hashlib.sha256(text).hexdigest()
