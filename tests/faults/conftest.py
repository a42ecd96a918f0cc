from collections.abc import Iterator
from pathlib import Path

import pytest

from .kills import World
from .lab import Lab


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory: Path = tmp_path_factory.mktemp("lab")
    with Lab(directory) as lab:
        yield World(lab)
