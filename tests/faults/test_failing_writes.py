"""Whichever write, sync or rename fails: old or new, whole; and what is said to be done is done."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import failing_writes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs LD_PRELOAD")
def test_every_write_may_fail(tmp_path):
    library = failing_writes.build(tmp_path)
    if library is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "work").mkdir()
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.failing_writes", tmp_path / "work"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    print(counts)
    assert set(counts) == set(failing_writes.OPERATIONS)
    assert all(count > 3 for count in counts.values())
