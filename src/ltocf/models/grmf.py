"""GRMF and GRMF-norm: matrix factorisation that pulls linked users and items together."""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from ltocf.batches.ahead import Batch
from ltocf.config import Loss
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel
from ltocf.models.pair_scores import count_rows, pair_scores, squared_norms


class GRMFConfig(EmbeddingConfig, frozen=True):
    smoothness: float = Field(1e-2, ge=0)  # lambda_g: 0 is MF
    by_degree: bool = False  # GRMF-norm: each vector over the root of its degree


class GRMF(EmbeddingModel):
    """Rao et al., "Collaborative filtering with graph information: consistency and scalable
    methods", NIPS 2015, in the form compared in the LightGCN paper (section 4.2): MF's loss plus
    lambda_g |e_u - e_i|^2, or lambda_g |e_u / sqrt(d_u) - e_i / sqrt(d_i)|^2 for GRMF-norm.

    The penalty is a mean over the batch's positive pairs, as BPR is, so that lambda_g does not
    depend on the size of the data or the batch."""

    Config = GRMFConfig
    config: GRMFConfig

    def __init__(self, graph: BipartiteGraph, config: GRMFConfig) -> None:
        super().__init__(graph, config)
        sums = np.where(graph.strengths > 0, graph.strengths, 1)
        degrees = sums if config.by_degree else np.ones(graph.n_nodes)
        self.scale = torch.from_numpy(degrees**-0.5)

    def embeddings(self) -> Tensor:
        return self.weight

    add_gradients_ = Model.add_gradients_  # nothing is propagated: each part by itself

    def loss(self, batch: Batch, loss: Loss) -> Tensor:
        fit = super().loss(batch, loss)
        return (
            fit + self.config.smoothness * self.roughness(batch) if self.config.smoothness else fit
        )

    def roughness(self, batch: Batch) -> Tensor:
        """The mean squared distance of the batch's positive pairs."""
        table = self.weight * self.scale.to(self.weight)[:, None]
        users = batch.users.to(table.device)
        items = batch.positives.to(table.device) + self.graph.n_users
        norms = squared_norms(table, count_rows(len(table), users, items).to(table))
        return (norms - 2 * pair_scores(table, users, items[:, None]).sum()) / len(users)
