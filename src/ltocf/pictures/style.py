"""Pictures as files: whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ltocf.storage.files import refuse_file, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".pdf", ".png", ".svg")


def save_picture(figure: Figure, path: Path) -> None:
    refuse_file(path, overwrite=True, kinds=PICTURES)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, format=path.suffix.removeprefix("."))
