"""Pages that are made from the code, so that they cannot be stale: run by mkdocs-gen-files.

reference/cli.md       from the commands
reference/settings.md  from the config classes: type, default, range, and the comment beside a field
examples/*.md          from the scripts in examples/, which are in percent format
"""

from __future__ import annotations

import ast
import html
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import mkdocs_gen_files
import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from ltocf.cli import command_line
from ltocf.config import LOSSES, RunConfig, TrainConfig
from ltocf.models import MODELS

ROOT = Path(__file__).parent.parent


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """As code in a table, where a backtick would keep the backslash of an escaped bar."""
    return f"<code>{html.escape(' '.join(text.split())).replace('|', '&#124;')}</code>"


def command_page() -> Iterator[str]:
    yield "# Command line\n\nThe commands' own help; `ltocf COMMAND --help` shows the same."
    for name, command in typer.main.get_command(command_line()).commands.items():  # type: ignore[attr-defined]
        words = [p.metavar or p.name.upper() for p in command.params if p.opts[0][0] != "-"]
        usage = f"```text\nltocf {name} {' '.join(words)} [OPTIONS]\n```"
        yield f"\n## ltocf {name}\n\n{cell(command.help)}\n\n{usage}\n"
        yield "| | | default |\n| --- | --- | --- |"
        for parameter in command.params:
            if parameter.name == "help" or parameter.hidden:
                continue
            flags = ", ".join(f"`{flag}`" for flag in parameter.opts if flag.startswith("-"))
            shown = flags or f"`{parameter.metavar or parameter.name.upper()}`"
            if flags and not parameter.is_flag:
                shown += f" {parameter.metavar or parameter.name.upper()}".replace("|", "\\|")
            default = "" if parameter.default in (None, False, ()) else f"`{parameter.default}`"
            yield f"| {shown} | {cell(parameter.help or '')} | {default} |"


def comments(kind: type[BaseModel]) -> dict[str, str]:
    """What the source says beside each field, or in the lines above it."""
    source = inspect.getsource(kind)
    lines = source.splitlines()
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        above, row = [], node.lineno - 2
        while lines[row].strip().startswith("#"):
            above.insert(0, lines[row].strip(" #"))
            row -= 1
        beside = re.search(r"  # (?!type:)(.*)$", lines[(node.end_lineno or 1) - 1])
        found[node.target.id] = " ".join([*above, beside.group(1) if beside else ""]).strip()
    return found


def field_table(kind: type[BaseModel], left_out: tuple[str, ...] = ()) -> Iterator[str]:
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            said |= comments(base)
    yield "| setting | type | default | meaning |\n| --- | --- | --- | --- |"
    for name, field in kind.model_fields.items():
        if name in left_out:
            continue
        annotation = inspect.formatannotation(field.annotation).replace("typing.", "")
        limits = ", ".join(
            f"{sign} {getattr(limit, attribute)}"
            for limit in field.metadata
            for attribute, sign in (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
            if hasattr(limit, attribute)
        )
        default = field.get_default(call_default_factory=True, validated_data={})
        known = default is not PydanticUndefined and not isinstance(default, BaseModel)
        shown = code(repr(default)) if known else ""
        kind_text = code(annotation) + (f", {limits}" if limits else "")
        yield f"| `{name}` | {kind_text} | {shown} | {cell(said.get(name, ''))} |"


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", cell(text))[0]


def settings_page() -> Iterator[str]:
    yield (
        "# Settings\n\nFor `ltocf train DATA key=value`, `Recommender(model, key=value)` and TOML "
        "files. A bare key goes where the chosen model has it; a key that means nothing to the "
        "model is refused."
    )
    yield "\n## A run\n"
    yield from field_table(RunConfig, ("loss", "train", "versions"))
    yield "\n## `[train]`\n"
    yield from field_table(TrainConfig)
    for name, kind in LOSSES.items():
        yield f"\n## `[loss]` {name}\n"
        yield from field_table(kind)
    for name, model in MODELS.items():
        yield f"\n## `[model]` {name}\n\n{cell(model.__doc__ or '')}\n"
        if model.Config.model_fields:
            yield from field_table(model.Config)


def example_page(script: Path) -> Iterator[str]:
    """A script in percent format as Markdown: `# %% [markdown]` cells are prose, others code."""
    docstring, _, body = script.read_text(encoding="utf-8").partition('"""\n\n')
    title, _, rest = docstring.removeprefix('"""').partition("\n")
    yield f"# {title.rstrip('.')}\n{rest}"
    yield f"\nThis page is `examples/{script.name}`: run it with `python examples/{script.name}`.\n"
    for chunk in re.split(r"^# %%", body, flags=re.MULTILINE):
        head, _, code = chunk.partition("\n")
        if "[markdown]" in head:
            yield re.sub(r"^# ?", "", code, flags=re.MULTILINE).strip() + "\n"
        elif code.strip():
            yield f"```python\n{code.strip()}\n```\n"


def write(path: str, lines: Iterator[str]) -> None:
    with mkdocs_gen_files.open(path, "w") as page:
        page.write("\n".join(lines) + "\n")


def main() -> None:
    write("reference/cli.md", command_page())
    write("reference/settings.md", settings_page())
    for script in sorted((ROOT / "examples").glob("*.py")):
        write(f"examples/{script.stem}.md", example_page(script))


main()
