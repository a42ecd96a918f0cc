"""What must be set before anything of ours is imported, in this process and in those it starts."""

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Where the published data lie; tests that need them are skipped without.
if (ROOT / "../shared/data").is_dir():
    os.environ.setdefault("LTOCF_DATA", str((ROOT / "../shared/data").resolve()))

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    # A core a worker; and two that write to one index of compiled kernels lose entries of it.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    cache = Path(os.environ.get("NUMBA_CACHE_DIR") or ROOT / ".pytest_cache" / "numba")
    os.environ["NUMBA_CACHE_DIR"] = str(cache / worker)
