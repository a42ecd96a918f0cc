"""The site says what the code says: messages, public names, pages."""

import ast
import inspect
import pydoc
import re
from pathlib import Path

import pytest

import ltocf
from ltocf.config import LOSSES, RunConfig, TrainConfig
from ltocf.models import MODELS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MESSAGES = re.findall(r"\*\*`(.+?)`", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"))
REFERENCE = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
DOCUMENTED = re.findall(r"^::: (\S+)", REFERENCE, re.MULTILINE)


def literals() -> set[str]:
    """The pieces of text in our source that are long enough to tell a message by."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value.strip(" ;:,.()"))
    return {text for text in found if len(text) >= 10 and " " in text}


LITERALS = literals()


def texts(tree: ast.Module) -> set[str]:
    """Whole texts, with {} for what an f-string puts in; docstrings are for readers of the code."""
    documented = {
        id(node.value) for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }  # fmt: skip
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            found.add("".join(map(str, parts)))
            documented |= {id(part) for part in node.values}
    return found | {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        and id(node) not in documented
    }  # fmt: skip


LIBRARY = [p for p in (ROOT / "src").rglob("*.py") if "cli" not in p.parts]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.stem)
def test_a_message_of_the_library_names_options_for_python_first(path):
    for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
        # What is in brackets or a whole command is for those at a shell.
        rest = re.sub(r"\([^()]*\)|'ltocf [^']*'", "", text)
        assert not re.search(r"(?:^|\s)--[a-z{]", rest), text


def test_troubleshooting_covers_at_least_twenty_messages():
    assert len(MESSAGES) >= 20


def test_every_entry_of_troubleshooting_leads_on():
    entries = re.findall(r"^: .*$", (DOCS / "troubleshooting.md").read_text("utf-8"), re.MULTILINE)
    assert len(entries) >= 20
    assert not [entry for entry in entries if not re.search(r"\]\([\w/-]+\.md", entry)]


@pytest.mark.parametrize("message", MESSAGES)
def test_every_message_of_troubleshooting_is_one_of_ours(message):
    beginning = message.partition("...")[0]
    assert any(text in message or beginning in text for text in LITERALS)


def test_everything_public_is_in_the_reference():
    for name in ltocf.__all__:
        if name != "__version__":
            assert any(
                entry.endswith(f".{name}") or hasattr(pydoc.locate(entry), name)
                for entry in DOCUMENTED
            ), name


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_documented_name_exists_and_says_what_it_does(name):
    found = pydoc.locate(name)
    assert found is not None
    assert inspect.getdoc(found)


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")}
    assert not [page for page in pages if not re.search(rf"(?<![\w/-]){re.escape(page)}", nav)]


@pytest.mark.parametrize(
    "kind", [RunConfig, TrainConfig, *LOSSES.values()], ids=lambda k: k.__name__
)
def test_every_setting_says_what_it_means(kind):
    assert not undescribed(kind)


@pytest.mark.parametrize("name", MODELS)
def test_every_setting_of_a_model_says_what_it_means(name):
    assert not undescribed(MODELS[name].Config)


def undescribed(kind):
    source = "\n".join(
        inspect.getsource(base) for base in kind.__mro__ if base.__module__.startswith("ltocf.")
    )
    lines = source.splitlines()
    missing = []
    for name in set(kind.model_fields) - {"name", "versions", "loss", "train"}:
        place = next(i for i, line in enumerate(lines) if line.startswith(f"    {name}: "))
        if "#" not in lines[place] and not lines[place - 1].strip().startswith("#"):
            missing.append(name)
    return missing
