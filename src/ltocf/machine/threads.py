"""How many threads torch, Numba, BLAS and our own kernels use, how they share work on a machine
that runs other programs too, and what becomes of polars' threads in a fork.

Parallel regions here are loops over ranges, computed by kernels that release the interpreter lock.
Threads fetch one range at a time, so that a thread whose core is busy with another program delays
the others by one range, not by an equal share of the work.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ltocf.errors import ConfigError, RunError

SMALL = 1_000_000  # numbers in a table, which one thread processes in about a millisecond
CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
TASKS = Path("/proc/self/task")  # Linux only; on other systems nothing is detected or refused
# Libraries read these variables when they are loaded. Setting them sets the number of threads
# without loading torch.
READ_BY = {"torch": ("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "numba": ("NUMBA_NUM_THREADS",)}


def usable_cores() -> int:
    """How many cores this process may use at a time: its affinity, or less if its control group
    has a quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        cores = os.cpu_count() or 1
    return max(1, math.ceil(min(cores, cgroup_quota())))


def cgroup_quota(membership: Path = MEMBERSHIP, root: Path = CGROUPS) -> float:
    """The least number of cores that this process's control groups and those above them grant,
    by version 1 or 2; infinity where there is no limit."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return math.inf
    quotas = [math.inf]
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":  # version 2, in a folder of its own where both are mounted
            places, read = (root, root / "unified"), _quota_v2
        elif "cpu" in controllers.split(","):
            places, read = (root / controllers, root / "cpu"), _quota_v1
        else:
            continue
        for place in places:
            # Inside a container the path may be that of the host, which is not mounted: the root
            # is then the container's own group, so look at every folder on the way that is there.
            folders = [place, *(place / part for part in _prefixes(path))]
            quotas += [read(folder) for folder in folders]
    return min(quotas)


def _prefixes(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part and part != ".."]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def _quota_v2(folder: Path) -> float:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return math.inf
    return math.inf if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return math.inf
    return quota / period if quota > 0 else math.inf


def use_threads(threads: int | None = None) -> int:
    """Let torch, Numba, BLAS and our kernels use this many threads, or as many as there are cores
    to use, shared among the processes that torchrun started here; how many that is."""
    if threads is not None and threads < 1:
        raise ConfigError(f"threads = {threads}: must be at least 1")
    neighbours = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    threads = threads or max(1, usable_cores() // neighbours)
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    for library, variables in READ_BY.items():
        if library in sys.modules:
            _set({library: threads})
        else:
            os.environ.update(dict.fromkeys(variables, str(threads)))
    return threads


def thread_count() -> int:
    """How many threads our own kernels use: as many as torch does, where it is loaded."""
    if (torch := sys.modules.get("torch")) is not None:
        return int(torch.get_num_threads())
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdecimal() else usable_cores()


def _set(threads: Mapping[str, int]) -> None:
    """The number of threads of torch, of Numba, or of both."""
    if "torch" in threads:
        import torch

        torch.set_num_threads(threads["torch"])
    if "numba" in threads:
        import numba

        most: int = vars(numba.config)["NUMBA_NUM_THREADS"]  # a module without types
        numba.set_num_threads(min(threads["numba"], most))


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """Within the block, torch and Numba use one thread if tables of this many numbers are small:
    handing small work to several costs more than they save."""
    import numba
    import torch

    before = {"torch": torch.get_num_threads(), "numba": numba.get_num_threads()}
    if numbers < SMALL:
        _set(dict.fromkeys(before, 1))
    try:
        yield
    finally:
        _set(before)


def for_factorising() -> AbstractContextManager[None]:
    """Within the block, one thread: LAPACK hands its factorisations to threads in tiny pieces, and
    those wait for each other. Two threads take 4 to 10 times the processor time of one to invert a
    matrix or to orthogonalise vectors, and beside a neighbour 9 times as long."""
    return threads_for(0)


def share_out(run: Callable[[int, int], None], n: int, chunk: int) -> None:
    """run(start, stop) for consecutive ranges of 0..n, of `chunk` each; threads pull the next one
    when they are done. `run` must release the interpreter lock for more than one to be of use."""
    if 0 < n <= chunk:  # nothing to share: to ask how many threads there are takes longer
        run(0, n)
        return
    starts = iter(range(0, n, chunk))

    def pull() -> None:
        for start in starts:  # next() on a range's iterator is atomic
            run(start, min(start + chunk, n))

    run_together([pull] * min(thread_count(), -(-n // chunk)))


def run_together(jobs: Sequence[Callable[[], None]]) -> None:
    """All of the jobs at once, one of them in this thread: on a busy machine, to start a thread and
    to wake up from waiting for it takes as long as a small job."""
    if not jobs:
        return
    first, *others = jobs
    if not others:
        first()
        return
    with ThreadPoolExecutor(len(others)) as pool:
        helpers = [pool.submit(job) for job in others]
        first()
        for helper in helpers:
            helper.result()


class _PolarsThreads:
    """Whether polars had threads before the last fork, and whether this process lost them in one.

    A forked child has none of its parent's threads, but polars believes that they exist and waits
    for them forever. They cannot be restarted in the child, so an error says what to do instead. A
    fork concerns the whole process, so this state is global. Only the two hooks below write it.
    """

    had_threads_before_fork = False
    lost_threads = False


def refuse_forked() -> None:
    """Raise a RunError if polars would wait forever."""
    if _PolarsThreads.lost_threads:
        raise RunError(
            "this process was forked from one that had used polars, which hangs in the child; "
            "start processes with 'spawn' or 'forkserver', or load the run only after the fork "
            "(docs/service.md#processes-of-your-own)"
        )


def _look() -> None:
    """Called before a fork. A child that lost the threads has none to see, but its own children
    would hang too."""
    _PolarsThreads.had_threads_before_fork = (
        _PolarsThreads.lost_threads or "polars-0" in _thread_names()
    )


def _note() -> None:
    """Called in the child after a fork."""
    _PolarsThreads.lost_threads = _PolarsThreads.had_threads_before_fork


def _thread_names() -> list[str]:
    names = []
    for file in TASKS.glob("*/comm"):
        try:
            names.append(file.read_text().strip())
        except OSError:  # it has just ended
            continue
    return names


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_look, after_in_child=_note)
