"""What computer this is, and what of it will be used: for `ltocf doctor` and for benchmarks."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ltocf.machine.memory import GIGABYTE, available_bytes
from ltocf.machine.threads import cgroup_quota, usable_cores

# What our kernels, BLAS and torch make use of, the widest last.
INSTRUCTIONS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "neon", "asimd")
LIBRARIES = ("torch", "numpy", "scipy", "numba", "polars", "torchdiffeq")
GPU_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # NVIDIA, AMD, and Linux in Windows
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Machine:
    """Facts; `advice` is what a user might want to change."""

    processor: str
    cores: int  # that this process may run on
    quota: float | None  # cores that its control group grants at a time
    threads: int  # that will be used
    instructions: tuple[str, ...]
    cache_bytes: int  # the last level's; 0 where the system does not tell
    memory_gb: float | None  # that can be had now
    blas: tuple[str, ...]
    gpu: str | None
    python: str
    libraries: dict[str, str]
    advice: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine() -> Machine:
    """Look at this computer. Loads BLAS and, if there may be a GPU, torch to ask them."""
    cores, quota = _cores(), cgroup_quota()
    there = available_bytes()
    gpu, note = _gpu()
    return Machine(
        processor=processor_name(),
        cores=cores,
        quota=None if quota == float("inf") else quota,
        threads=usable_cores(),
        instructions=_instructions(),
        cache_bytes=last_level_cache_bytes(),
        memory_gb=None if there is None else round(there / GIGABYTE, 1),
        blas=_blas(),
        gpu=gpu,
        python=platform.python_version(),
        libraries=_versions(),
        advice=tuple(line for line in (_busy(usable_cores()), note) if line),
    )


def processor_name() -> str:
    names = [line.partition(":")[2].strip() for line in _cpuinfo() if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def last_level_cache_bytes() -> int:
    """The largest cache the system tells of, or 0."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    texts = [path.read_text().strip() for path in sizes]
    return max((int(text[:-1]) * UNITS[text[-1]] for text in texts), default=0)


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not on this system
        return []


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def _instructions() -> tuple[str, ...]:
    lines = [line for line in _cpuinfo() if line.startswith(("flags", "Features"))]
    known = set(lines[0].partition(":")[2].split()) if lines else set()
    return tuple(name for name in INSTRUCTIONS if name in known)


def _blas() -> tuple[str, ...]:
    """The linear algebra libraries that NumPy and SciPy use."""
    found = _libraries_in(*map(_shipped_with, ("numpy", "scipy")))
    if not found:  # they use those of the system, and tell which when they are loaded
        import numpy  # noqa: F401
        import scipy.linalg  # noqa: F401

        found = _libraries_in()
    return found


def _shipped_with(package: str) -> list[Path]:
    """The libraries that lie beside a package, where wheels for Linux have them."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent
    return sorted(folder.with_name(f"{folder.name}.libs").glob("*blas*"))


def _libraries_in(*shipped: list[Path]) -> tuple[str, ...]:
    """What is loaded, and these: to load a library takes a tenth of the time that its package
    does."""
    from ctypes import CDLL

    from threadpoolctl import threadpool_info

    for files in shipped:
        for file in files:
            with suppress(OSError):  # it needs others, which the package would load before it
                CDLL(str(file))
    found = [
        f"{one['internal_api']} {one['version']}, {one['num_threads']} threads"
        for one in threadpool_info()
        if one["user_api"] == "blas"
    ]
    return tuple(dict.fromkeys(found))


def _gpu() -> tuple[str | None, str]:
    """Its name, and what to know about it."""
    if find_spec("torch") is None:
        return None, "torch is not installed: lists can be made, models cannot be trained"
    # torch takes seconds to load, and without a driver it finds nothing.
    if sys.platform == "linux" and not any(Path(driver).exists() for driver in GPU_DRIVERS):
        return None, ""
    import torch

    if not torch.cuda.is_available():
        return None, ""
    note = "the GPU will be used for training (device=cpu turns that off); untested on hardware"
    return torch.cuda.get_device_name(), note


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def _busy(threads: int) -> str:
    """What the load of the last minute means for whoever starts something now."""
    if sys.platform == "win32":
        return ""
    load = os.getloadavg()[0]
    if load <= threads:
        return ""
    return (
        f"other programs keep this computer busy (load {load:.1f} on {threads} threads): what is "
        "started now takes longer, and budgets in seconds achieve less"
    )
