"""The tree in docs/architecture.md is true, and a file imports only from files above it."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ltocf"
OUTSIDE = {"__init__", "__main__"}  # they gather what is below them


def modules_in_tree() -> list[str]:
    """Every module of the tree, dotted, in its order.

    A line is a folder and the files in it, or at the top files alone; a deeper indent is a
    folder inside the last one.
    """
    tree = (
        (ROOT / "docs" / "architecture.md")
        .read_text()
        .partition("src/ltocf/\n")[2]
        .partition("\ntests/")[0]
    )
    found: list[str] = []
    folders: list[tuple[int, str]] = []
    for line in tree.splitlines():
        indent = len(line) - len(line.lstrip())
        names = re.split(r"\s{2,}", line.strip())
        folders = [(depth, name) for depth, name in folders if depth < indent]
        words = names[0].split()
        if words == ["configs/"]:  # holds no module
            continue
        if words[0].endswith("/"):
            folders.append((indent, words[0].rstrip("/")))
            words = words[1:] or (names[1].split() if len(names) > 1 else [])
        prefix = ".".join(name for _, name in folders)
        found += [f"{prefix}.{word}" if prefix else word for word in words]
    return found


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imported_modules(path: Path, known: set[str]) -> set[str]:
    """The modules of the package that a file imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ltocf":
            module = (node.module or "").removeprefix("ltocf").removeprefix(".")
            for alias in node.names:
                inside = f"{module}.{alias.name}" if module else alias.name
                names.add(inside if inside in known else module)
    return names - {""}


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.stem not in OUTSIDE)


def test_the_tree_names_every_file_once():
    assert sorted(modules_in_tree()) == sorted(map(module_of, FILES))


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_file_imports_only_from_files_above_it(path):
    order = modules_in_tree()
    place = order.index(module_of(path))
    for name in imported_modules(path, set(order)):
        # A folder stands for its __init__, which gathers all of it.
        places = [i for i, k in enumerate(order) if k == name or k.startswith(f"{name}.")]
        assert max(places) < place, f"{module_of(path)} imports {name}, which is not above it"


def test_no_file_is_far_longer_than_one_idea():
    """A bound on neglect, not a rule to write by: a file is split where a second idea begins."""
    lengths = {module_of(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert not {name: lines for name, lines in lengths.items() if lines > 350}


def modules_by_package() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.stem != "__init__":
            found.setdefault(path.parent.relative_to(PACKAGE).as_posix(), set()).add(path.stem)
    return found


def test_a_package_holds_no_more_than_one_remembers():
    """But for the lists: a file per model, and a file per command."""
    lists = {"models", "cli"}
    crowded = {
        name: len(modules)
        for name, modules in modules_by_package().items()
        if len(modules) > 14 and name not in lists
    }
    assert not crowded


def test_no_file_imports_itself_through_others():
    """The order of the tree says so too, but a tree can be written down wrong."""
    files = {module_of(path).removesuffix(".__init__"): path for path in PACKAGE.rglob("*.py")}
    graph = {name: imported_modules(path, set(files)) for name, path in files.items()}
    assert set(TopologicalSorter(graph).static_order()) == set(files)  # or a CycleError


def test_every_folder_is_a_package():
    """Or a wheel would leave it out, while an editable install would not tell."""
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert not [folder for folder in folders if not (folder / "__init__.py").is_file()]
