"""Random numbers as hashes of (key, position, draw): any thread or process draws the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def scrambled(key: Any, position: Any, draw: Any) -> Any:
    """64 random bits: SplitMix64's finaliser over the counter."""
    z = np.uint64(key) + np.uint64(position) * np.uint64(0x9E3779B97F4A7C15)
    z += (np.uint64(draw) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, inline="always")
def uniform(key: Any, position: Any, draw: Any, n: Any) -> Any:
    """An integer in [0, n), for n up to 2^32: the upper bits, scaled by multiplication."""
    z = scrambled(key, position, draw)
    return np.int64(((z >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, inline="always")
def half_bits(n: Any) -> Any:
    """Half as many bits as numbers below n need, rounded up."""
    bits = 1
    while n > 1 << (2 * bits):
        bits += 1
    return bits


@njit(cache=True)
def shuffled(key: Any, position: Any, n: Any, half: Any) -> Any:
    """Where 0 <= position < n goes in a permutation of 0..n-1, with half = half_bits(n).

    A Feistel network permutes the numbers of 2 * half bits; what leaves 0..n-1 goes through it
    again until it is back. A permutation of any size takes no memory, and any part of it is known
    without the rest.
    """
    mask, at = np.int64((1 << half) - 1), np.int64(position)
    while True:
        left, right = at >> half, at & mask
        for turn in range(_turns(half)):
            left, right = right, left ^ (_turned(key, right, turn) & mask)
        at = (left << half) | right
        if at < n:
            return at


@njit(cache=True)
def unshuffled(key: Any, place: Any, n: Any, half: Any) -> Any:
    """The position that `shuffled` sends to this place: the same turns, the last one first."""
    mask, at = np.int64((1 << half) - 1), np.int64(place)
    turns = _turns(half)
    while True:
        left, right = at >> half, at & mask
        for turn in range(turns):
            left, right = right ^ (_turned(key, left, turns - 1 - turn) & mask), left
        at = (left << half) | right
        if at < n:
            return at


@njit(cache=True, inline="always")
def _turns(half: Any) -> Any:
    return 4 if half > 8 else 16  # a small network mixes little in one turn


@njit(cache=True, inline="always")
def _turned(key: Any, bits: Any, turn: Any) -> Any:
    return np.int64(scrambled(key, bits, -8 - turn) >> np.uint64(32))
