"""What a search is asked for, as the process that watches it tells the process that does it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ltocf.data.dataset_files import MARKER, read_description
from ltocf.data.sources.catalog import PUBLISHED
from ltocf.data.sources.text_folder import is_text_folder
from ltocf.errors import ConfigError, DataError, LtocfError, RunError
from ltocf.runs.versions import SEARCH, current_path

BYTES = 6  # of an item in a line of text

ERRORS: dict[str, type[LtocfError]] = {
    kind.__name__: kind for kind in (ConfigError, DataError, RunError)
}


@dataclass(frozen=True)
class Job:
    output: str
    began: float  # seconds since the epoch, by time.time()
    seconds: float  # until it has to have ended
    settings: dict[str, Any]  # as of a config file; of a search that goes on, its own are taken
    order: str | None = None  # of lines of a folder of text: time, none, or found out
    overwrite: bool = False
    resume: bool = False
    threads: int | None = None

    @property
    def ends(self) -> float:
        return self.began + self.seconds

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, line: str) -> Job:
        return cls(**json.loads(line))


def ordered_by(order: str | None) -> bool | None:
    """What --order says: that lines are in the order of time or not, or nothing."""
    try:
        return {None: None, "time": True, "none": False}[order]
    except KeyError:
        raise ConfigError(f"order = {order!r}: give time or none") from None


def is_search(run: Path) -> bool:
    """Whether the run at this path is one that a search made, and can go on with."""
    return (run / SEARCH).is_dir()


def pairs_in(dataset: str | Path) -> int:
    """About how many pairs a data set has, without reading it."""
    path = Path(dataset)
    for folder in (path, current_path(path) / "data"):  # a data set, or the one of a run
        if (folder / MARKER).is_file():
            return int(read_description(folder)["counts"]["train"])
    if is_text_folder(path):
        return (path / "train.txt").stat().st_size // BYTES
    return PUBLISHED[str(dataset)].train if str(dataset) in PUBLISHED else 0
