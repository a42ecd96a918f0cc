"""The public interface: what `__all__` names is there, and docs/api.md tells of it."""

import tomllib
from pathlib import Path

import pytest

import ltocf

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ltocf.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name):
    assert getattr(ltocf, name) is getattr(ltocf, name)
    assert name.startswith("__") or name in (ROOT / "docs/api.md").read_text(encoding="utf-8")


def test_what_is_not_public_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'recommendations'"):
        ltocf.recommendations  # noqa: B018


def test_there_is_one_version_number():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
