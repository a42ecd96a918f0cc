"""What must be set before anything of ours is imported, in this process and in those it starts."""

import os
import shutil
from hashlib import sha1
from pathlib import Path

ROOT = Path(__file__).parent.parent


def copy_kernels(package: Path, cache: Path) -> None:
    """Copy what Numba keeps compiled beside the package's files to where it looks for them under
    NUMBA_CACHE_DIR, so that a worker compiles only what no command has compiled before it."""
    for kept in package.rglob("__pycache__/*.nb[ci]"):
        folder = kept.parent.parent  # of the source file
        digest = sha1(str(folder).encode(), usedforsecurity=False).hexdigest()
        target = cache / f"{folder.name}_{digest}" / kept.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(kept, target)


# Where the published data lie; tests that need them are skipped without.
if (ROOT / "../shared/data").is_dir():
    os.environ.setdefault("LTOCF_DATA", str((ROOT / "../shared/data").resolve()))

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    # A core a worker; and two that write to one index of compiled kernels lose entries of it.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    cache = Path(os.environ.get("NUMBA_CACHE_DIR") or ROOT / ".pytest_cache" / "numba")
    if not (cache / worker).exists():  # a copy into one that is used could mix two indices
        copy_kernels(ROOT / "src" / "ltocf", cache / worker)
    os.environ["NUMBA_CACHE_DIR"] = str(cache / worker)
