"""tools/audit.py: a known hole fails; not being able to ask is one line."""

import runpy
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "audit.py"
CLEAN = {"name": "polars", "version": "1.0", "vulns": []}
HOLED = {
    "name": "numpy",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.0.1", "2.1"]}],
}
UNKNOWN = {"name": "torch", "skip_reason": "not on PyPI"}


@pytest.mark.parametrize(
    ("told", "code", "line"),
    [
        ([CLEAN, UNKNOWN], 0, "known holes: 0 in the 1 of 2 packages known"),
        ([CLEAN, HOLED], 1, "numpy 2.0: PYSEC-1, mended in 2.0.1, 2.1"),
        ([UNKNOWN], 0, "known holes: not asked"),
        (None, 0, "known holes: not asked"),
    ],
)
def test_a_hole_fails_and_silence_is_said(told, code, line, capsys, monkeypatch):
    main = runpy.run_path(str(TOOL))["main"]
    monkeypatch.setitem(main.__globals__, "audit", lambda: told)
    monkeypatch.setattr(sys, "argv", ["audit.py"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    assert capsys.readouterr().out.startswith(line)
