"""Graphs small enough to know the right answer, and to write A down."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ltocf.config import Loss, TrainConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model
from ltocf.runs.settings import means_something
from ltocf.training.training import train

USERS, ITEMS = 16, 8  # of one community


def two_communities() -> Dataset:
    """Everybody has all items of their own community but one, which is their test item."""
    pairs = [
        (side * USERS + user, side * ITEMS + item)
        for side in (0, 1)
        for user in range(USERS)
        for item in range(ITEMS)
    ]
    users, items = np.array(pairs).T
    withheld = users % ITEMS == items % ITEMS
    user_ids = IdMap([f"user {row}" for row in range(2 * USERS)])
    item_ids = IdMap([f"item {row}" for row in range(2 * ITEMS)])
    everything = Interactions.build(users, items, user_ids, item_ids)
    nothing = everything.select(np.zeros(len(everything), bool))
    split = Split(everything.select(~withheld), nothing, everything.select(withheld))
    return Dataset("communities", split)


def used_by(name: str, **settings: Any) -> dict[str, Any]:
    """Those of the settings that mean something to the model."""
    return {key: value for key, value in settings.items() if means_something(key, name)}


def fit(model: Model, config: TrainConfig, loss: Loss, *, seed: int, **more: Any) -> list[Any]:
    """Solve and train a model that is already built; the records of training."""
    model.solve_(seed)
    if "state" not in more:
        model.draw_(seed)
    if model.solved(model.config):
        return []
    return train(model, config, loss, seed=seed, **more).records


def random_graph() -> BipartiteGraph:
    """8 users and 10 items with pairs, one user and one item without."""
    rng = np.random.default_rng(3)
    return BipartiteGraph(
        Interactions.build(rng.integers(0, 8, 25), rng.integers(0, 10, 25), user_ids=9, item_ids=11)
    )


def adjacency(graph: BipartiteGraph) -> Tensor:
    """B: zeros and ones, dense. (n_nodes, n_nodes)"""
    train = graph.interactions
    B = torch.zeros(graph.n_nodes, graph.n_nodes, dtype=torch.float64)
    users, items = torch.from_numpy(train.users).long(), torch.from_numpy(train.items).long()
    B[users, items + graph.n_users] = 1
    return B + B.T
