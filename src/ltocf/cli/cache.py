"""ltocf cache"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json
from ltocf.storage.cache import cache_root, contents
from ltocf.storage.cache import clear as clear_cache


def cache(
    clear: Annotated[
        bool,
        typer.Option(
            "--clear", help="Remove everything; it is downloaded or computed again when needed."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what is cached to save time (downloads, singular vectors), or remove it."""
    found = contents()
    if clear:
        clear_cache()
    if as_json:
        print_json({"directory": str(cache_root()), "bytes": found, "cleared": clear})
        return
    total = sum(found.values())
    print(f"{cache_root()}: {total / 1e6:,.1f} MB" + (", removed" if clear and found else ""))
    for name, size in found.items():
        print(f"  {name}  {size / 1e6:,.1f} MB")
