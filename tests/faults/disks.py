"""Disks that are full or cannot be written: one line, exit code 2, and nothing half-written."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .contents import contents, leftovers
from .kills import SCENARIOS, TRIAL, World

PICTURE = ("response", "run", "-o", f"{TRIAL}/response.png")
COMMANDS = {name: scenario.command for name, scenario in SCENARIOS.items()} | {"response": PICTURE}


@contextmanager
def small_disk(directory: Path) -> Iterator[bool]:
    """A tmpfs on `directory`, if this user may mount one."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(directory)]
    try:
        mounted = os.getuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(directory)], check=True)


def resize(directory: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(directory)], check=True)


def check_refused(world: World, name: str, **limits: object) -> bool:
    """Run a command that may find no room; returns whether it did not."""
    scenario = SCENARIOS.get(name)
    output = world.trial / (scenario.output if scenario else "response.png")
    before = contents(output) if output.exists() else None
    ended = world.lab.ltocf(*COMMANDS[name], **limits)
    if ended.code == 0:
        return False
    assert ended.clear, (name, limits, ended)
    if name == "train" and output.exists():
        scenario.whole(output)  # finished epochs stay, to be resumed
    elif name == "update":
        assert contents(output) == before, (name, limits, ended)
    elif name != "tune":
        assert not output.exists(), (name, limits, ended)
    left = [file for file in leftovers(world.trial) if not file.endswith(".parts")]
    assert not left, (name, limits, left)
    return True


def limit_file_sizes(world: World, name: str, random_: random.Random) -> bool:
    """As if the disk were full when one file has grown to some size."""
    scenario = SCENARIOS.get(name)
    world.fresh(scenario.starts_from if scenario else None)
    return check_refused(world, name, file_limit=int(10 ** random_.uniform(0.5, 4.5)))


def fill_disk(world: World, name: str, random_: random.Random) -> bool | None:
    """With a disk of some size; None if no such disk can be had."""
    world.fresh()
    with small_disk(world.trial) as mounted:
        if not mounted:
            return None
        scenario = SCENARIOS.get(name)
        if scenario and scenario.starts_from:
            resize(world.trial, "size=4m")
            subprocess.run(["cp", "-r", "run", TRIAL], cwd=world.directory, check=True)
        used = sum(file.stat().st_blocks // 2 for file in world.trial.rglob("*")) + 8
        resize(world.trial, f"size={used + int(10 ** random_.uniform(0.5, 2.5))}k")
        return check_refused(world, name)


def refuse_writing(world: World, name: str) -> bool | None:
    """On a disk that is mounted read-only; None if no such disk can be had."""
    world.fresh()
    with small_disk(world.trial) as mounted:
        if not mounted:
            return None
        scenario = SCENARIOS.get(name)
        if scenario and scenario.starts_from:
            resize(world.trial, "size=4m")
            subprocess.run(["cp", "-r", "run", TRIAL], cwd=world.directory, check=True)
        resize(world.trial, "ro")
        refused = check_refused(world, name)
        assert refused, name
        return refused
