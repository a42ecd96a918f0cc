"""The tree in the README is the architecture: it is true, and a part imports only from above."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ltocf"


def parts_in_readme() -> list[str]:
    """The files and folders of src/ltocf in the order of the README's tree."""
    tree = (ROOT / "README.md").read_text().partition("src/ltocf/\n")[2].partition("```")[0]
    lines = [re.match(r"  (\w+)(\.py|/) ", line) for line in tree.splitlines()]
    return [line.group(1) for line in lines if line]


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    """The parts of the package that a file imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "ltocf":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ltocf."):
            names.add((node.module or "").split(".")[1])
    return names - {"__version__"}


def test_the_tree_in_the_readme_names_every_part_once():
    found = {part_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
    assert sorted(parts_in_readme()) == sorted(found)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.stem)
def test_a_file_imports_only_from_parts_above_it(path):
    order = parts_in_readme()
    own = part_of(path)
    if own in ("__init__", "__main__"):
        return
    below = {name for name in imported_parts(path) if order.index(name) > order.index(own)}
    assert not below
