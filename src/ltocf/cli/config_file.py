"""`--config FILE`: every option of a command from a TOML file, by the option's own name."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from ltocf.errors import ConfigError


def read_options(path: Path, command: Any) -> dict[str, Any]:
    """The file's value for each parameter of the command; an unknown option is refused."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise ConfigError(f"{path}: cannot be read: {failure.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise ConfigError(f"{path}: is not valid TOML: {failure}") from None
    names = {written_name(one): one.name for one in command.params if one.name not in UNWRITTEN}
    for key in table:
        if key not in names:
            raise ConfigError(f"{path}: unknown option {key!r}; choose from: {', '.join(names)}")
    return {names[key]: value for key, value in table.items()}


UNWRITTEN = ("config", "check", "get", "help")


def written_name(parameter: Any) -> str:
    """'--update-every' -> 'update-every'; the run has no dashes."""
    longest = max(parameter.opts, key=len)
    return str(longest).lstrip("-")


def _use(context: typer.Context, path: Path | None) -> Path | None:
    # Click takes options from here that neither the command line nor the environment gives.
    if path is not None:
        context.default_map = read_options(path, context.command)
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
