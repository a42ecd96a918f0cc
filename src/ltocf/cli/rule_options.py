"""Rules as options of commands that list items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltocf.cli.options import Ids, split_ids
from ltocf.errors import DataError

if TYPE_CHECKING:
    from ltocf.recommend.rules import Rules

ExcludeFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file of items to leave out, one id per line."),
]
Boosts = Annotated[
    list[str] | None,
    typer.Option(
        "--boost",
        metavar="CONDITION:FACTOR",
        help="Multiply the scores of the items that meet a condition, such as new:1.2. Repeat it "
        "for more.",
    ),
]
AtMost = Annotated[
    list[str] | None,
    typer.Option(
        "--at-most",
        metavar="N:ATTRIBUTE",
        help="List at most N items with the same value of an attribute, such as 2:category.",
    ),
]
Pins = Annotated[
    Ids, typer.Option("--pin", metavar="ID,ID,...", help="Items that come first in every list.")
]
Diversity = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="How different the items of a list should be: 0 ranks by score alone, 1 makes them as "
        "different from each other as possible.",
    ),
]
AlikeBy = Annotated[
    str,
    typer.Option(
        "--alike-by",
        metavar="attributes|vectors",
        help="With --diversity: what makes two items alike.",
    ),
]


def read_rules(
    where: list[str] | None,
    exclude_file: Path | None,
    boost: list[str] | None,
    at_most: list[str] | None,
    pin: list[str] | None,
    diversity: float,
    alike_by: str,
) -> Rules:
    from ltocf.recommend.rules import Rules

    return Rules.parse(
        where or (),
        exclude=() if exclude_file is None else _ids_of(exclude_file),
        boost=boost or (),
        at_most=at_most or (),
        pin=split_ids(pin or []),
        diversity=diversity,
        by=alike_by,
    )


def _ids_of(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
    return [line.strip() for line in lines if line.strip()]
