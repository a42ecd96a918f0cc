"""Popularity: the same list for everybody, the floor under every model."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import ModelConfig
from ltocf.models.history import HistoryModel
from ltocf.scorers.constant import PopularityScorer


class PopularityConfig(ModelConfig, frozen=True):
    recent: float = Field(1.0, gt=0, le=1)  # the share of all interactions that counts, the latest


class Popularity(HistoryModel):
    """Items by log(1 + their interactions), of all or of the latest.

    The logarithm changes no list. In a blend, where scores are divided by their spread, it keeps
    the few most popular items from drowning all others.
    """

    Config = PopularityConfig
    config: PopularityConfig

    def __init__(self, graph: BipartiteGraph, config: PopularityConfig) -> None:
        super().__init__(graph, config)
        if config.recent < 1 and graph.interactions.timestamps is None:
            raise ConfigError(
                f"recent = {config.recent!r} needs the time of each interaction, which these data "
                "do not have; name the time column (--time), or leave recent out"
            )

    def solve(self, seed: int) -> dict[str, Tensor]:
        counts = _count_latest(self.graph.interactions, self.config.recent)
        return {"scores": torch.from_numpy(np.log1p(counts)).float()}

    def scorer(self) -> PopularityScorer:
        return PopularityScorer(self.arrays(), self.history_weights, self.graph.interactions)


def _count_latest(train: Interactions, share: float) -> NDArray[np.int64]:
    """Each item's interactions among the latest `share` of all, and those of the same moment."""
    if share == 1 or train.timestamps is None:
        return train.item_degrees
    place = int(len(train) * (1 - share))
    since = np.partition(train.timestamps, place)[place]
    return np.bincount(train.items[train.timestamps >= since], minlength=train.n_items)
