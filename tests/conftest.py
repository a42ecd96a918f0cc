import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from ltocf.cli import main
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.town import make_town
from ltocf.data.splits import Split

CHROMIUM = Path("/usr/bin/chromium")
# A first call compiles; and a run that fails must fail again when it is repeated.
hypothesis.settings.register_profile("ours", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ours")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Benchmarks are slow; what is slow begins first, so that no worker is left with it at last."""
    for item in items:
        if "benchmarks" in item.path.parts:
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def interactions_of(pairs: list[tuple[int, int]], n_users: int, n_items: int) -> Interactions:
    users, items = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Interactions.build(users, items, n_users, n_items)


def withhold(n_users: int, n_items: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Two communities that share no item; user u of each has not yet seen item u of their own."""
    train, test = [], []
    for community in range(2):
        for user in range(n_users):
            for item in range(n_items):
                pair = (community * n_users + user, community * n_items + item)
                (test if item == user else train).append(pair)
    return train, test


@pytest.fixture(scope="session")
def two_communities() -> Split:
    """Ten users and ten items in two halves: the only sensible recommendation is the withheld."""
    train, test = withhold(5, 5)
    whole = interactions_of(train, 10, 10)
    return Split(whole, whole.select(np.zeros(len(whole), bool)), interactions_of(test, 10, 10))


@pytest.fixture(scope="session")
def hamlet() -> Dataset:
    """A small synthetic town."""
    return make_town(people=120, places=90, seed=1).dataset


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("needs Debian's chromium")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def ltocf(monkeypatch, capsys):
    """Run a command line in this process: (exit code, standard output, standard error)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["ltocf", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
