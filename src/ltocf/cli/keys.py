"""ltocf keys"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json, print_table
from ltocf.errors import ConfigError


class KeyAction(StrEnum):
    list = "list"
    add = "add"
    rotate = "rotate"
    remove = "remove"


def keys(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of keys, as for serve.")],
    action: Annotated[KeyAction, typer.Argument(help="What to do.")] = KeyAction.list,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The client's name.")] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="What a new key may do: read, write or admin; repeat for more."),
    ] = None,
    grace: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long the old key still works after a rotation."),
    ] = "1d",
    as_json: Json = False,
) -> None:
    """List, add, rotate or remove the keys of a service's clients. A new key is shown only once."""
    from ltocf.cli.serve import seconds
    from ltocf.service.access.keys import add_key, read_keys, remove_key, rotate_key

    if action is KeyAction.list:
        found = read_keys(file)
        if as_json:
            shown = ("name", "scopes", "made", "ends")
            print_json([{name: getattr(key, name) for name in shown} for key in found])
        else:
            cells = [[key.name, " ".join(key.scopes), _day(key.ends)] for key in found]
            print_table(f"Keys in {file}", ["client", "may", "until"], cells)
        return
    if name is None:
        raise ConfigError(f"say whose key to {action}: ltocf keys {file} {action} NAME")
    if action is KeyAction.remove:
        remove_key(file, name)
        print(f"the keys of {name} no longer work")
        return
    if action is KeyAction.add:
        secret = add_key(file, name, scope or ["read"])
    else:
        secret = rotate_key(file, name, seconds(grace))
    if as_json:
        print_json({"name": name, "key": secret})
    else:
        print(secret)


def _day(ends: int | None) -> str:
    from datetime import UTC, datetime

    return "" if ends is None else datetime.fromtimestamp(ends, UTC).isoformat()
