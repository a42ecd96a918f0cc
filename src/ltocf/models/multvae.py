"""Mult-VAE: a variational autoencoder of a user's whole history."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor, nn

from ltocf.batches.ahead import Batch, Batches
from ltocf.batches.triples import DrawBy
from ltocf.config import Loss
from ltocf.data.histories import HistoryWeights, histories_of
from ltocf.data.interactions import Interactions
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, ModelConfig
from ltocf.models.layers import dropout, glorot_
from ltocf.scorers.networks import AutoencoderScorer


class MultVAEConfig(ModelConfig, frozen=True):
    hidden: int = Field(600, ge=1)  # width of the layers around the latent vector
    latent: int = Field(200, ge=1)  # width of the latent vector
    dropout: float = Field(0.5, ge=0, lt=1)  # of the history that is encoded
    beta: float = Field(0.2, ge=0)  # weight of the KL term, once annealed
    anneal: float = Field(0.2, ge=0, le=1)  # share of training in which beta grows to that


class MultVAE(Model):
    """Liang et al., "Variational Autoencoders for Collaborative Filtering", WWW 2018, eq. 2-4 and
    section 2.2.2.

    A history, scaled to length 1 and thinned by dropout -> tanh -> mean and log-variance -> tanh
    -> logits of all items; loss is the multinomial likelihood of the history plus beta times KL.
    That loss is its own: it takes nothing of `[loss]`. A batch has as many users as own about
    `batch_size` pairs; its logits (users, n_items) are the only dense array. A step multiplies
    users x hidden x n_items three times: on Gowalla with 600 users about 90 GFLOP. A user is their
    history, so new users are scored as known ones are."""

    Config = MultVAEConfig
    rows = {"encode": "items", "output.weight": "items", "output.bias": "items"}  # noqa: RUF012
    config: MultVAEConfig
    losses = ()

    def __init__(self, graph: BipartiteGraph, config: MultVAEConfig) -> None:
        super().__init__(graph, config)
        self.histories = histories_of(graph.interactions, ordered=False)
        self.encode = nn.Parameter(torch.zeros(graph.n_items, config.hidden))
        self.encode_bias = nn.Parameter(torch.zeros(config.hidden))
        self.posterior = nn.Linear(config.hidden, 2 * config.latent)
        self.decode = nn.Linear(config.latent, config.hidden)
        self.output = nn.Linear(config.hidden, graph.n_items)

    def draw_(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        nn.init.xavier_uniform_(self.encode, generator=generator)
        nn.init.zeros_(self.encode_bias)
        glorot_(self, generator)

    def batches(
        self, loss: Loss, *, batch_size: int, draw_by: DrawBy, seed: int, epoch: int
    ) -> UserBatches:
        return UserBatches(self.graph.interactions, batch_size, seed, epoch)

    def loss(self, batch: Batch, loss: Loss) -> Tensor:
        histories = self.histories[batch.users.numpy()]
        mean, log_variance = self.encoded(histories)
        std = (log_variance / 2).exp()
        z = mean + std * torch.empty(std.shape).normal_(generator=self.noise).to(std)
        log_likelihood = F.log_softmax(self.decoded(z), 1)
        rows = np.repeat(np.arange(len(batch.users)), np.diff(histories.indptr))
        fit = -log_likelihood[torch.from_numpy(rows), torch.from_numpy(histories.indices).long()]
        return (fit.sum() + self.beta() * divergence(mean, log_variance)) / len(batch.users)

    def beta(self) -> float:
        ramp = 1.0 if self.config.anneal == 0 else min(1.0, self.progress / self.config.anneal)
        return self.config.beta * ramp

    def encoded(self, histories: csr_array) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of the latent vectors. (rows, latent) each"""
        counts = np.diff(histories.indptr)
        values = torch.from_numpy(np.repeat(np.maximum(counts, 1) ** -0.5, counts)).to(self.encode)
        values = dropout(values, self.config.dropout, self.noise if self.training else None)
        indices = torch.from_numpy(histories.indices).long().to(values.device)
        offsets = torch.from_numpy(histories.indptr[:-1]).long().to(values.device)
        summed = F.embedding_bag(
            indices, self.encode, offsets, mode="sum", per_sample_weights=values
        )
        mean, log_variance = self.posterior(torch.tanh(summed + self.encode_bias)).chunk(2, 1)
        return mean, log_variance

    def decoded(self, z: Tensor) -> Tensor:
        logits: Tensor = self.output(torch.tanh(self.decode(z)))
        return logits

    def scorer(self) -> AutoencoderScorer:
        arrays = {name: value.cpu().numpy() for name, value in self.state_dict().items()}
        train = self.graph.interactions
        return AutoencoderScorer(arrays, HistoryWeights(), train, latent=self.config.latent)


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL of N(mean, exp(log_variance)) from N(0, 1), summed."""
    return 0.5 * (log_variance.exp() + mean.square() - 1 - log_variance).sum()


class UserBatches(Batches):
    """One epoch: every user who has something, in random order."""

    def __init__(self, interactions: Interactions, batch_size: int, seed: int, epoch: int) -> None:
        active = np.flatnonzero(interactions.user_degrees)
        size = max(1, batch_size * len(active) // max(len(interactions), 1))
        users = torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(active))
        nothing = torch.empty(0, dtype=torch.int64)
        super().__init__(len(active), size, lambda a, b: Batch(users[a:b], nothing, nothing))
