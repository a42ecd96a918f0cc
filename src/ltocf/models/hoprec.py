"""HOP-Rec: matrix factorisation that also learns from the items at the end of random walks."""

from __future__ import annotations

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from ltocf.batches.ahead import ChunkedBatch
from ltocf.batches.triples import DrawBy, TripleBatches
from ltocf.batches.walks import WalkBatches
from ltocf.config import Loss
from ltocf.errors import ConfigError
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel


class HOPRecConfig(EmbeddingConfig, frozen=True):
    orders: int = Field(2, ge=1)  # H: how many items of a walk are positives
    margin: bool = True  # leave pairs alone that are 1 / order apart


class HOPRec(EmbeddingModel):
    """Yang et al., "HOP-Rec: High-Order Proximity for Implicit Recommendation", RecSys 2018, eq. 5.

    A walk user -> item -> user -> item ... gives a positive of each order k; its BPR term has
    weight 1 / k and acts while e_u . (e_i - e_j) <= 1 / k. Deviations: Adam instead of plain SGD
    (the shared trainer); one l2 for users and items; the negatives are items that the user has
    not, where the authors do not check; pairs are visited as [train] says, not by degree."""

    Config = HOPRecConfig
    config: HOPRecConfig
    losses = ("bpr",)

    def embeddings(self) -> Tensor:
        return self.weight

    def batches(
        self, loss: Loss, *, batch_size: int, draw_by: DrawBy, seed: int, epoch: int
    ) -> WalkBatches:
        triples = TripleBatches(
            self.graph.interactions,
            batch_size=batch_size,
            negatives=self.negatives(loss),
            seed=seed,
            epoch=epoch,
            draw_by=draw_by,
        )
        return WalkBatches(triples, self.config.orders, self.graph.indptr, self.graph.neighbours)

    def batch_loss(self, batch: ChunkedBatch, loss: Loss) -> Tensor:
        if loss.sampling == "shared":
            raise ConfigError("hoprec draws its own negatives; use sampling=uniform")
        return super().batch_loss(batch, loss)

    def loss_of_scores(
        self, near: Tensor, far: Tensor, loss: Loss, thresholds: Tensor | None
    ) -> Tensor:
        total = near.new_zeros(())
        for order in range(1, self.config.orders + 1):
            apart = near[:, order - 1, None] - far
            terms = F.softplus(-apart)
            if self.config.margin:
                terms = terms * (apart <= 1 / order)
            total = total + terms.mean() / order
        return total
