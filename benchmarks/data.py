"""Data for benchmarks: by name or directory, made of any size, or Amazon-Beauty's next items."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.beauty import next_items
from benchmarks.city import make_city
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import Split

CITY, RANDOM = "city-", "random-"
USERS_AND_ITEMS_PER_INTERACTION = 1 / 27, 1 / 20  # about those of Gowalla
TESTED = 0.2


def read_data(name: str) -> Dataset:
    """What `load_dataset` knows, `city-N` of about N visits, `random-N` of about N pairs at random,
    a fifth of them for testing, or the folder of Amazon-Beauty."""
    if name.startswith(CITY):
        return make_city(int(name.removeprefix(CITY))).dataset
    if name.startswith(RANDOM):
        return random_pairs(int(name.removeprefix(RANDOM)))
    if (Path(name) / "item_attributes.json").exists():
        return next_items(Path(name))
    return load_dataset(name)


def random_pairs(n: int) -> Dataset:
    """Every item is in somebody's training pairs: how others are scored is not measured."""
    pairs = synthetic_interactions(n)
    touched, first, items = np.unique(pairs.items, return_index=True, return_inverse=True)
    whole = Interactions.build(pairs.users, items, pairs.n_users, len(touched))
    tested = np.random.default_rng(0).random(len(whole)) < TESTED
    tested[first] = False
    train, test = whole.select(~tested), whole.select(tested)
    return Dataset("random", Split(train, train.empty(), test))


def synthetic_interactions(n: int) -> Interactions:
    """Distinct pairs of uniform users and long-tailed items, in no order a cache would like."""
    rng = np.random.default_rng(0)
    n_users, n_items = (int(n * share) for share in USERS_AND_ITEMS_PER_INTERACTION)
    users = rng.integers(0, n_users, int(1.02 * n))
    ranks = (n_items * rng.random(len(users)) ** 2).astype(np.int64)
    items = rng.permutation(n_items)[ranks]
    return Interactions.build(users, items, n_users, n_items)
