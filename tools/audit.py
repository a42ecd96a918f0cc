"""Whether any installed package has a known hole, as far as can be asked: `make audit`.

pip-audit asks the network. Without it, or without a network, one line says so and nothing fails; a
hole does.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

COMMAND = [sys.executable, "-m", "pip_audit", "--skip-editable", "--format", "json"]


def audit() -> list[dict[str, Any]] | None:
    """Each package as pip-audit tells of it; None if it cannot ask."""
    if importlib.util.find_spec("pip_audit") is None:
        return None
    done = subprocess.run([*COMMAND, "--progress-spinner", "off"], capture_output=True, text=True)
    try:
        return list(json.loads(done.stdout)["dependencies"])
    except (ValueError, KeyError):
        return None


def main() -> None:
    packages = audit() or []
    asked = [package for package in packages if "vulns" in package]
    holes = [(package, hole) for package in asked for hole in package["vulns"]]
    for package, hole in holes:
        mended = ", ".join(hole["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {hole['id']}, mended in {mended}")
    if asked:
        print(f"known holes: {len(holes)} in the {len(asked)} of {len(packages)} packages known")
    else:
        print(
            "known holes: not asked, for want of pip-audit ('pip install pip-audit') or a network"
        )
    sys.exit(bool(holes))


if __name__ == "__main__":
    main()
