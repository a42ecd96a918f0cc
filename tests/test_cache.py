"""The cache: bounded, and emptied by a command."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ltocf.storage import cache


def test_what_was_used_longest_ago_makes_room(tmp_path: Path) -> None:
    for age, name in enumerate(["new", "middle", "old"]):
        (tmp_path / name).write_bytes(b"x" * 100)
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    cache.touch(tmp_path / "old")
    cache.shrink(tmp_path, most_bytes=250)
    assert {path.name for path in tmp_path.iterdir()} == {"old", "new"}


def test_the_command_shows_and_empties_the_cache(
    ltocf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spectra").mkdir()
    (tmp_path / "spectra" / "one").write_bytes(b"x" * 3_000_000)
    monkeypatch.setattr(cache, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(import_module("ltocf.cli.cache"), "cache_root", lambda: tmp_path)
    code, out, _ = ltocf("cache")
    assert code == 0 and "spectra  3.0 MB" in out
    code, out, _ = ltocf("cache", "--clear")
    assert code == 0 and "removed" in out
    assert not list(tmp_path.iterdir())
