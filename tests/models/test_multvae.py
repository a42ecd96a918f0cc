from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltocf.config import BPR
from ltocf.models.multvae import MultVAE, divergence
from tests.models.toys import adjacency, random_graph


def build(**settings: object) -> MultVAE:
    graph = random_graph()
    model = MultVAE(graph, MultVAE.Config(hidden=6, latent=3, **settings)).double()
    model.initialise_(seed=1)
    return model


def test_its_loss_is_the_elbo_of_a_dense_computation() -> None:
    model = build(dropout=0, beta=0.4, anneal=0)
    batches = model.batches(BPR(), batch_size=12, draw_by="pairs", seed=0, epoch=1)
    batch = next(drawn.whole() for drawn in batches)
    model.before_step_(0.5, seed=7)
    loss = model.loss(batch, BPR())
    x = adjacency(model.graph)[:9, 9:][batch.users]
    hidden = torch.tanh(x / x.norm(dim=1, keepdim=True) @ model.encode + model.encode_bias)
    both = hidden @ model.posterior.weight.T + model.posterior.bias
    mean, log_variance = both[:, :3], both[:, 3:]
    epsilon = torch.empty(mean.shape).normal_(generator=torch.Generator().manual_seed(7))
    z = mean + (log_variance / 2).exp() * epsilon
    logits = torch.tanh(z @ model.decode.weight.T + model.decode.bias) @ model.output.weight.T
    likelihood = (x * (logits + model.output.bias).log_softmax(1)).sum(1)
    kl = 0.5 * (log_variance.exp() + mean**2 - 1 - log_variance).sum(1)
    assert_close(loss, (0.4 * kl - likelihood).mean())


def test_the_divergence_of_the_standard_normal_is_zero_and_of_a_shifted_one_half_its_square() -> (
    None
):
    zero = torch.zeros(1, 4)
    assert divergence(zero, zero) == 0
    assert divergence(zero + 3, zero) == pytest.approx(4 * 9 / 2)


def test_beta_grows_to_its_cap_in_the_given_share_of_training() -> None:
    model = build(beta=0.6, anneal=0.2)
    betas = []
    for progress in (0, 0.1, 0.2, 0.9):
        model.before_step_(progress, seed=0)
        betas.append(model.beta())
    assert betas == pytest.approx([0, 0.3, 0.6, 0.6])


def test_a_new_user_is_scored_as_a_known_one_with_their_history() -> None:
    model = build().eval()
    scorer = model.scorer()
    users = np.arange(9, dtype=np.int32)
    np.testing.assert_array_equal(scorer.from_history(scorer.known[users]), scorer(users))


def test_a_batch_has_the_users_of_about_batch_size_pairs() -> None:
    model = build()
    pairs, users = len(model.graph.interactions), 8
    batches = model.batches(BPR(), batch_size=pairs // 2, draw_by="pairs", seed=0, epoch=1)
    sizes = [batch.rows for batch in batches]
    assert len(batches) == len(sizes)
    assert sum(sizes) == users
    assert max(sizes) in (3, 4)
