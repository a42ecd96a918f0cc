"""What `ltocf doctor` says agrees with what the library uses."""

import json

from ltocf.machine import hardware
from ltocf.machine.hardware import examine
from ltocf.machine.threads import usable_cores


def test_the_doctor_names_the_cores_and_memory_that_will_be_used():
    found = examine()
    assert found.threads == usable_cores() <= found.cores
    assert found.processor and found.python
    assert all(found.libraries[name] != "missing" for name in ("numpy", "numba", "polars"))
    assert found.memory_gb is None or found.memory_gb > 0
    assert json.loads(json.dumps(found.to_dict()))["threads"] == found.threads


def test_a_busy_computer_is_mentioned(monkeypatch):
    monkeypatch.setattr(hardware.os, "getloadavg", lambda: (99.0, 0.0, 0.0))  # type: ignore[attr-defined]
    assert any("busy" in line for line in examine().advice)
    monkeypatch.setattr(hardware.os, "getloadavg", lambda: (0.0, 0.0, 0.0))  # type: ignore[attr-defined]
    assert not any("busy" in line for line in examine().advice)


def test_a_system_that_tells_nothing_is_no_error(monkeypatch):
    monkeypatch.setattr(hardware, "_cpuinfo", lambda: [])
    found = examine()
    assert found.instructions == () and found.processor


def test_the_command_prints_a_table_and_json(ltocf):
    code, out, _ = ltocf("doctor")
    assert code == 0 and "last-level cache" in out and "threads" in out
    code, out, _ = ltocf("doctor", "--json")
    assert code == 0 and json.loads(out)["threads"] >= 1
