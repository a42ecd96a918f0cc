"""Random: lists drawn by lot, the floor under the floor."""

import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.models.base import ModelConfig
from ltocf.models.history import HistoryModel

ODD = 0x2545F4914F6CDD1D  # a multiplier that mixes the bits of a 64-bit number


class Random(HistoryModel):
    """A score for each history and item that looks random and stays the same."""

    Config = ModelConfig

    def solve(self, seed: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return {"lots": torch.randint(2**62, (self.graph.n_items,), generator=generator)}

    def score_histories(self, histories: csr_array) -> Tensor:
        lots = self.fitted["lots"]
        of_rows = torch.from_numpy(histories.astype("int64") @ lots.numpy())
        mixed = (of_rows[:, None] ^ lots) * ODD
        mixed = (mixed ^ (mixed >> 29)) * ODD
        return (mixed >> 40).float()
