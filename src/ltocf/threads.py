"""One thread for small work: handing it to several costs more than they save, and on a busy
machine they mostly wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba
import torch

SMALL = 1_000_000  # numbers in a table; a thread goes through it in a millisecond


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """Within the block, torch and Numba use one thread if tables of this many numbers are small."""
    before = torch.get_num_threads(), numba.get_num_threads()
    if numbers < SMALL:
        torch.set_num_threads(1)
        numba.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])
