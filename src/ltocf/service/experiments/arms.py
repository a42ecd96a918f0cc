"""Which version a person sees: by a hash of their id, so that it is always the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ltocf.errors import ConfigError

WORDS = ("current", "previous", "candidate")
EXAMPLE = "A=current:0.9,B=candidate:0.1"


@dataclass(frozen=True)
class Arm:
    name: str
    version: str  # a word or the number of a version
    share: float


@dataclass(frozen=True)
class Split:
    """Arms whose shares add up to 1. If a share grows, it takes people only from the arms beside
    it."""

    arms: tuple[Arm, ...]

    def arm_of(self, user: str) -> Arm:
        names = ",".join(arm.name for arm in self.arms)
        place, end = position(names, user), 0.0
        for arm in self.arms:
            end += arm.share
            if place < end:
                return arm
        return self.arms[-1]


def position(salt: str, user: str) -> float:
    """A person's position in [0, 1), the same in every process and at any time."""
    text = f"{salt}\n{user}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) / 2**64


def parse_split(text: str) -> Split:
    """'A=current:0.9,B=candidate:0.1'"""
    arms = [_arm(part) for part in text.split(",")]
    names = [arm.name for arm in arms]
    if len(arms) < 2 or len(set(names)) < len(names):
        raise ConfigError(
            f"experiment {text!r}: needs two or more arms with different names: {EXAMPLE}"
        )
    total = sum(arm.share for arm in arms)
    if abs(total - 1) > 1e-6:
        raise ConfigError(f"experiment {text!r}: the shares add up to {total:g} instead of 1")
    return Split(tuple(arms))


def _arm(part: str) -> Arm:
    name, _, rest = part.strip().partition("=")
    version, _, share = rest.partition(":")
    try:
        wanted = Arm(name.strip(), check_version(version.strip()), float(share))
    except ValueError:
        wanted = Arm("", "", -1)
    if not wanted.name or not 0 < wanted.share < 1:
        raise ConfigError(f"cannot read {part!r} as an arm; write NAME=VERSION:SHARE: {EXAMPLE}")
    return wanted


def check_version(word: str) -> str:
    if word not in WORDS and not word.isdigit():
        raise ConfigError(f"unknown version {word!r}; write {', '.join(WORDS)} or a number")
    return word


def share_of(one: Arm, other: Arm) -> float:
    """The planned share of the second arm among the people of two arms."""
    return other.share / (one.share + other.share)
