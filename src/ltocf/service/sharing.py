"""One copy of a model's tables for all workers: in a file that each of them maps."""

from __future__ import annotations

import os
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from ltocf.service.served import Served


def share_(served: Served, directory: Path) -> None:
    """Let the model's weights and vectors be pages of a file, which the first worker writes."""
    tables = _tables(served)
    path = directory / f"model-{served.version}.safetensors"
    if not path.exists():
        mine = path.with_name(f"{path.name}.{os.getpid()}")
        save_file({name: table.detach().contiguous() for name, table in tables.items()}, mine)
        os.replace(mine, path)
    mapped = load_file(path)
    for name, table in tables.items():
        table.data = mapped[name]


def _tables(served: Served) -> dict[str, Tensor]:
    """What is large: a closed form's weights are mapped already, where they were loaded."""
    tables: dict[str, Tensor] = dict(served.recommender.model.named_parameters())
    vectors = served.scorer.vectors()
    for name, table in zip("uih", vectors or (), strict=False):
        if table is not None:
            tables[f"vectors {name}"] = table
    return tables
