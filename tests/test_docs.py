"""The commands and examples of README and documentation run.

What a block is says its language: sh and python are run, page by page, in one directory; bash needs
published data, a network or hours, and is held against the options that there are; text is output.
"""

import argparse
import asyncio
import importlib
import re
import runpy
import shlex
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import typer

from ltocf.cli import command_line
from ltocf.models import MODELS
from tests.data.ingest.movielens_files import write_movielens

ROOT = Path(__file__).parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
BLOCKS = {
    page: [(language, textwrap.dedent(text)) for _, language, text in FENCE.findall(whole)]
    for page, whole in PAGES.items()
}
RUN = [page for page, blocks in BLOCKS.items() if {"sh", "python"} & {kind for kind, _ in blocks}]
INLINE = re.compile(r"`((?:ltocf [a-z]|python -m benchmarks\.)[^`]*)`")
COMMANDS: Any = typer.main.get_command(command_line()).commands  # type: ignore[attr-defined]
TASTES = {
    "ann": "tea jazz", "bob": "tea chess jazz", "cem": "jazz chess opera", "dee": "tea chess go",
    "eve": "opera jazz tea go", "fay": "chess go jazz", "gus": "opera tea chess", "hal": "go tea",
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_block_says_whether_it_is_run(page):
    assert {language for language, _ in BLOCKS[page]} <= {"sh", "python", "bash", "text"}


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_every_command_and_example_of_a_page_runs(page, ltocf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_movielens(tmp_path / "ml-1m", "ml-1m")
    rows = [f"{user},{item}" for user, items in TASTES.items() for item in items.split()]
    (tmp_path / "visits.csv").write_text("\n".join(["user,item", *rows]) + "\n")
    (tmp_path / "new-visits.csv").write_text("user,item\nann,go\nivy,tea\n")
    monkeypatch.setattr(MODELS, "_loaded", dict(MODELS._loaded))  # a page adds one of its own
    known: dict[str, object] = {}
    for number, (language, text) in enumerate(BLOCKS[page]):
        if language == "python":
            script = tmp_path / f"block{number}.py"
            script.write_text(text, encoding="utf-8")
            known = runpy.run_path(str(script), init_globals=known)
        elif language == "sh":
            for line in text.splitlines():
                perform(line, ltocf)


def perform(line, ltocf):
    program, *arguments = shlex.split(line, comments=True)
    if program == "curl":
        assert curl(arguments) < 300, line
        return
    assert program == "ltocf", line
    if arguments[0] == "serve" and "--get" not in arguments:  # rather than for ever
        arguments += ["--get", "/ready"]
    code, _, err = ltocf(*arguments)
    assert code == 0, f"{line}\n{err}"


def curl(arguments):
    """The status of what runs/visits answers; without a port."""
    from ltocf.service.server import Settings, make_app
    from ltocf.service.wire.test_client import ask

    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    for option, default in (("-X", "GET"), ("-H", ""), ("-d", "")):
        parser.add_argument(option, default=default)
    asked = parser.parse_args(arguments)
    service = make_app(Settings(Path("runs/visits"), None))
    target = asked.url.removeprefix("localhost:8000")
    reply = asyncio.run(ask(service, asked.X, target, asked.d.encode()))
    service.state.live.close()
    return reply.status


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_has_options_that_exist(page, monkeypatch):
    blocks = [text for language, text in BLOCKS[page] if language == "bash"]
    for line in [*"".join(blocks).splitlines(), *INLINE.findall(PAGES[page])]:
        check_options(line, monkeypatch)


def check_options(line, monkeypatch):
    words = shlex.split(line, comments=True)
    if words[:1] == ["torchrun"]:
        words = words[words.index("-m") + 1 :]
    if words[0] == "ltocf":
        command = COMMANDS[words[1]]
        command.make_parser(command.context_class(command)).parse_args(words[2:])
    elif words[:2] == ["python", "-m"]:
        monkeypatch.setattr(sys, "argv", words[2:])
        monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
        with pytest.raises(Parsed):
            importlib.import_module(words[2]).main()
    elif words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets, line
    else:
        assert words[0] in ("cd", "pip", "python"), line


class Parsed(Exception):
    pass


def parse_and_stop(parser):
    _, unknown = parser.parse_known_args(sys.argv[1:])
    assert not unknown, unknown
    raise Parsed
