"""Random: lists drawn by lot, the floor under the floor."""

import torch
from torch import Tensor

from ltocf.models.base import ModelConfig
from ltocf.models.history import HistoryModel
from ltocf.scorers.constant import RandomScorer


class Random(HistoryModel):
    """A score for each history and item that looks random and stays the same."""

    Config = ModelConfig

    def solve(self, seed: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return {"lots": torch.randint(2**62, (self.graph.n_items,), generator=generator)}

    def scorer(self) -> RandomScorer:
        return RandomScorer(self.arrays(), self.history_weights, self.graph.interactions)
