from __future__ import annotations

import torch
from torch.testing import assert_close

from ltocf.batches.ahead import Batch
from ltocf.config import BPR
from ltocf.models.grmf import GRMF
from ltocf.models.mf import MF
from tests.models.toys import adjacency, random_graph

BATCH = Batch(torch.tensor([0, 1, 1]), torch.tensor([2, 3, 2]), torch.tensor([[5], [6], [7]]))
LOSS = BPR(negatives=1, sampling="uniform")


def build(**settings: object) -> GRMF:
    model = GRMF(random_graph(), GRMF.Config(dim=8, **settings)).double()
    model.initialise_(seed=1)
    return model


def test_without_smoothness_it_is_mf() -> None:
    mf = MF(random_graph(), MF.Config(dim=8)).double()
    mf.initialise_(seed=1)
    assert_close(build(smoothness=0).loss(BATCH, LOSS), mf.loss(BATCH, LOSS), rtol=0, atol=0)


def test_smoothness_adds_the_mean_squared_distance_of_the_positive_pairs() -> None:
    model = build(smoothness=0.5)
    users, items = model.weight[BATCH.users], model.weight[BATCH.positives + 9]
    expected = 0.5 * (users - items).square().sum(1).mean()
    added = model.loss(BATCH, LOSS) - build(smoothness=0).loss(BATCH, LOSS)
    assert_close(added, expected)


def test_by_degree_each_vector_is_divided_by_the_root_of_its_degree() -> None:
    model = build(smoothness=1, by_degree=True)
    degrees = adjacency(model.graph).sum(1).clamp(min=1)
    scaled = model.weight / degrees.sqrt()[:, None]
    expected = (scaled[BATCH.users] - scaled[BATCH.positives + 9]).square().sum(1).mean()
    assert_close(model.roughness(BATCH), expected)
