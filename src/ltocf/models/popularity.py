"""Popularity: the same list for everybody, the floor under every model."""

import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.models.base import ModelConfig
from ltocf.models.history import HistoryModel


class Popularity(HistoryModel):
    """Items by their number of training interactions."""

    Config = ModelConfig

    def solve(self, seed: int) -> dict[str, Tensor]:
        return {"counts": torch.from_numpy(self.graph.interactions.item_degrees).float()}

    def score_histories(self, histories: csr_array) -> Tensor:
        return self.fitted["counts"].repeat(histories.shape[0], 1)
