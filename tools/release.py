"""Build sdist and wheel reproducibly, and check them as a stranger would: `make release`.

The version is the package's own; a tag must be v and that. The wheel is installed into an empty
environment, with the newest and then with the oldest dependencies allowed, and runs
`ltocf demo --quick` there, from outside the checkout.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"


def run(*command: str | Path, **options: object) -> str:
    print("$", *command, flush=True)
    done = subprocess.run(
        [str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE, **options
    )
    return done.stdout


def build(into: Path) -> dict[str, str]:
    """sdist and wheel with the time of the last commit in them; name -> sha256."""
    epoch = run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    environment = os.environ | {"SOURCE_DATE_EPOCH": epoch}
    run(sys.executable, "-m", "build", "--outdir", into, ROOT, env=environment)
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(into.iterdir())
    }


def check_version() -> str:
    version = re.search(
        r'^__version__ = "(.+)"', (ROOT / "src/ltocf/__init__.py").read_text(), re.M
    )
    assert version is not None, "src/ltocf/__init__.py names no version"
    tags = run("git", "tag", "--points-at", "HEAD", cwd=ROOT).split()
    if tags and f"v{version.group(1)}" not in tags:
        sys.exit(f"error: the tag {tags[0]!r} is not v{version.group(1)}")
    return version.group(1)


def changelog_section(version: str) -> str:
    """What changed, for the release's page: the section of this version, or what is unreleased."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for title in (version, "Unreleased"):
        found = re.search(rf"^## \[{re.escape(title)}\].*?\n(.*?)(?=^## \[|\Z)", text, re.M | re.S)
        if found:
            return found.group(1).strip() + "\n"
    sys.exit(f"error: CHANGELOG.md has no section for {version}")


def try_wheel(wheel: Path, constraints: str) -> None:
    """In an empty environment, outside the checkout, with nothing of ours on the path."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "venv", with_pip=True)
        bin_ = Path(folder) / "venv" / ("Scripts" if os.name == "nt" else "bin")
        run(bin_ / "pip", "install", "--quiet", "-c", ROOT / constraints, wheel)
        print(run(bin_ / "ltocf", "demo", "--quick", cwd=folder))
        run(bin_ / "ltocf", "configs", cwd=folder)


def main() -> None:
    version = check_version()
    shutil.rmtree(DIST, ignore_errors=True)
    first = build(DIST)
    with tempfile.TemporaryDirectory() as again:
        second = build(Path(again))
    if first != second:
        sys.exit(f"error: two builds differ: {first} and {second}")
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
    for constraints in ("constraints.txt", "constraints-oldest.txt"):
        try_wheel(next(DIST.glob("*.whl")), constraints)
    (DIST / "CHANGES.md").write_text(changelog_section(version), encoding="utf-8")
    for name, digest in first.items():
        print(f"{digest}  {name}")


if __name__ == "__main__":
    main()
