"""Help texts are sentences, for every command and every option."""

from typing import Any

import pytest
import typer

from ltocf.cli import command_line

COMMANDS: Any = typer.main.get_command(command_line()).commands  # type: ignore[attr-defined]
TEXTS = {f"ltocf {name}": command.help for name, command in COMMANDS.items()} | {
    f"ltocf {name} {parameter.opts[0]}": parameter.help
    for name, command in COMMANDS.items()
    for parameter in command.params
}


@pytest.mark.parametrize("where", TEXTS)
def test_a_help_text_is_a_sentence(where):
    text = TEXTS[where]
    assert text, f"{where} says nothing"
    assert text[0].isupper() or text[0] in "'\"", text
    assert text.endswith((".", ")")), text
    assert not text.startswith("Default"), text  # says what it is first
