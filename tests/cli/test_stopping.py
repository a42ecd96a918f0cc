"""SIGTERM ends a training as Ctrl-C does: what was done is kept, said, and gone on from."""

import os
import signal
import subprocess
import sys
import time

from ltocf.data.sources.town import make_town
from ltocf.runs.run import STATE

SETTINGS = ("dim=8", "epochs=400", "patience=400", "end_time=2.0", "--model", "ltocf")


def test_a_terminated_training_says_what_is_kept(tmp_path):
    make_town(300, 120).dataset.save(tmp_path / "data")
    run = tmp_path / "run"
    command = [sys.executable, "-m", "ltocf", "train", str(tmp_path / "data"), "-o", str(run)]
    process = subprocess.Popen(
        [*command, *SETTINGS],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": ""},
    )
    deadline = time.monotonic() + 240
    while not (run / STATE).exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=120)[1]
    assert process.returncode == 130, err
    assert "kept. Continue with 'ltocf train --resume -o" in err
    assert "no epoch" not in err
