"""The commands and examples of the documentation run."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from tests.data.ingest.movielens_files import write_movielens

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


PAGES = sorted(
    path.name for path in DOCS.glob("*.md") if BLOCK.search(path.read_text(encoding="utf-8"))
)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_example_of_a_page_runs(page, ltocf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_movielens(tmp_path / "ml-1m", "ml-1m")
    known: dict[str, object] = {}
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert blocks
    for number, (language, text) in enumerate(blocks):
        if language == "python":
            script = tmp_path / f"block{number}.py"
            script.write_text(text, encoding="utf-8")
            known = runpy.run_path(str(script), init_globals=known)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "ltocf", line
            code, _, err = ltocf(*arguments)
            assert code == 0, f"{line}\n{err}"
