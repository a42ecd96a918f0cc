"""How much memory this process may use, and a clear error beforehand if something will not fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ltocf.errors import ConfigError

VARIABLE = "LTOCF_MEMORY"  # in gigabytes; overrides what is detected
UNLIMITED = 1 << 60  # a control group of version 1 without a limit reports a number beyond this
GIGABYTE = 1e9


def require_memory(needed: float, what: str, advice: str) -> None:
    """A ConfigError if `what` needs more bytes than are available; no check if that is unknown."""
    there = available_bytes()
    if there is not None and needed > there:
        raise ConfigError(
            f"{what} needs about {needed / GIGABYTE:.1f} GB of memory, but "
            f"{there / GIGABYTE:.1f} GB are available; {advice} "
            f"(to override this check, set {VARIABLE} to gigabytes)"
        )


def available_bytes(root: Path = Path("/")) -> int | None:
    """The smallest of the machine's free memory and the limits on this process; None if unknown."""
    if told := os.environ.get(VARIABLE):
        try:
            return int(float(told) * GIGABYTE)
        except ValueError:
            raise ConfigError(f"{VARIABLE} = {told!r}: give gigabytes, such as 16") from None
    return min([*_of_machine(root), *_of_group(root), *_of_process(root)], default=None)


def _of_machine(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        kilobytes = dict(line.split()[:2] for line in lines)
        yield int(kilobytes["MemAvailable:"]) * 1024
    except (OSError, KeyError, ValueError):
        if root == Path("/") and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_group(root: Path) -> Iterator[int]:
    """What is left of each control group's limit, from this process's own up to the root."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in groups:
        _, kinds, name = line.split(":", 2)
        if kinds == "":  # version 2
            base, limit, used = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in kinds.split(","):
            base = root / "sys/fs/cgroup/memory"
            limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        own = base / name.lstrip("/")
        for folder in (own, *own.parents):
            if not folder.is_relative_to(base):
                break
            try:
                most = int((folder / limit).read_text())
                now = int((folder / used).read_text()) - _reclaimable(folder)
            except (OSError, ValueError):  # no limit here: 'max', or no such file
                continue
            if most < UNLIMITED:
                yield max(most - now, 0)


def _reclaimable(folder: Path) -> int:
    """Cached pages of files, which the kernel counts as used but can drop when memory is short."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines).get("inactive_file", 0))
    except (OSError, ValueError):
        return 0


def _of_process(root: Path) -> Iterator[int]:
    """What `ulimit -v` leaves."""
    if sys.platform == "win32":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    try:
        pages = int((root / "proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        pages = 0
    yield max(limit - pages * resource.getpagesize(), 0)
