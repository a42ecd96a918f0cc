"""The job that the supervising process gives to the process that searches."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ltocf.data.dataset_files import MARKER, read_description
from ltocf.data.sources.published import PUBLISHED
from ltocf.data.sources.text_folder import is_text_folder
from ltocf.errors import ConfigError, DataError, LtocfError, RunError
from ltocf.runs.versions import SEARCH, current_path

BYTES = 6  # per item in a text file, to estimate the number of pairs from its size

ERRORS: dict[str, type[LtocfError]] = {
    kind.__name__: kind for kind in (ConfigError, DataError, RunError)
}


@dataclass(frozen=True)
class Job:
    output: str
    began: float  # seconds since 1970, by time.time()
    seconds: float  # the budget
    settings: dict[str, Any]  # as in a config file; a resumed search uses its own instead
    order: str | None = None  # of the lines of a text folder: time or none; None: detect it
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


def is_search(run: Path) -> bool:
    """Whether the run at this path was made by a search that can be continued."""
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
