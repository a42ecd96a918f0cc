"""`--config FILE`: every option of a command from a TOML file, by the option's own name."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from ltocf.errors import ConfigError

# The parser raises this for every wrong option. Old versions of typer take it from click, which new
# versions no longer install. Its subclass BadParameter is public in both.
USAGE_ERROR: Any = typer.BadParameter.__base__


def read_options(path: Path, context: typer.Context) -> dict[str, Any]:
    """The file's value for each parameter of the command; an unknown option or a value of another
    kind is refused."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise ConfigError(f"{path}: cannot be read: {failure.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise ConfigError(f"{path}: is not valid TOML: {failure}") from None
    parameters: Any = context.command.params
    known = {written_name(one): one for one in parameters if one.name not in UNWRITTEN}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{path}: unknown option {key!r}; choose from: {', '.join(known)}")
        _check(path, key, value, known[key], context)
    return {known[key].name: value for key, value in table.items()}


def _check(path: Path, key: str, value: Any, parameter: Any, context: typer.Context) -> None:
    """A ConfigError if the option cannot have this value: the parser would name the command line,
    where there is nothing wrong."""
    if parameter.multiple and not isinstance(value, list):
        raise ConfigError(f"{path}: {key} takes several values: write {key} = [{value!r}]")
    flag = getattr(parameter, "is_flag", False)
    if flag and not isinstance(value, bool):
        raise ConfigError(f"{path}: {key} is true or false, not {value!r}")
    if not flag and isinstance(value, bool):  # to Python true is 1
        raise ConfigError(f"{path}: {key} cannot be {str(value).lower()}; it needs a value")
    try:
        parameter.process_value(context, value)
    except USAGE_ERROR as refusal:
        raise ConfigError(f"{path}: {key} cannot be {value!r}: {refusal.message}") from None


UNWRITTEN = ("config", "check", "get", "help")


def written_name(parameter: Any) -> str:
    """'--update-every' -> 'update-every'; the run has no dashes."""
    longest = max(parameter.opts, key=len)
    return str(longest).lstrip("-")


def _use(context: typer.Context, path: Path | None) -> Path | None:
    # Click takes options from here that neither the command line nor the environment gives.
    if path is not None:
        context.default_map = read_options(path, context)
    return path


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        callback=_use,
        is_eager=True,
        help="A TOML file with any of these options and 'run'; the command line overrides it. "
        "With such a file, SIGHUP reloads the service without downtime.",
    ),
]
