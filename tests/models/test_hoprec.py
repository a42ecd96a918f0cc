from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltocf.batches.ahead import Batch
from ltocf.config import BPR, Softmax, TrainConfig
from ltocf.errors import ConfigError
from ltocf.models.hoprec import HOPRec
from ltocf.models.mf import MF
from tests.models.toys import adjacency, fit, random_graph

LOSS = BPR(negatives=3, sampling="uniform")


def build(**settings: object) -> HOPRec:
    model = HOPRec(random_graph(), HOPRec.Config(dim=8, **settings)).double()
    model.initialise_(seed=1)
    return model


def batches(model: HOPRec | MF) -> list[Batch]:
    drawn = model.batches(LOSS, batch_size=7, draw_by="pairs", seed=2, epoch=1)
    return [batch.whole() for batch in drawn]


def test_order_one_without_margin_is_bpr_of_mf() -> None:
    ours, mf = build(orders=1, margin=False), MF(random_graph(), MF.Config(dim=8)).double()
    mf.initialise_(seed=1)
    for walks, triples in zip(batches(ours), batches(mf), strict=True):
        assert_close(ours.loss(walks, LOSS), mf.loss(triples, LOSS), rtol=1e-14, atol=0)


def test_the_terms_have_weight_and_margin_one_over_the_order() -> None:
    model = build(orders=2)
    with torch.no_grad():
        model.weight.zero_()
        model.weight[0, 0] = 1  # user 0; items score as below for them
        model.weight[[9, 10, 11], 0] = torch.tensor([0.9, 0.7, 0.0], dtype=torch.float64)
    batch = Batch(torch.tensor([0]), torch.tensor([[0, 1]]), torch.tensor([[2]]))
    # Order 1 is 0.9 apart, within its margin 1; order 2 is 0.7 apart, beyond its margin 1/2.
    expected = math.log1p(math.exp(-0.9))
    assert model.loss(batch, LOSS.model_copy(update={"l2": 0})).item() == pytest.approx(expected)
    batch = batch._replace(positives=torch.tensor([[1, 2]]))  # 0.7 and 0 apart: both within
    expected = math.log1p(math.exp(-0.7)) + math.log(2) / 2
    assert model.loss(batch, LOSS.model_copy(update={"l2": 0})).item() == pytest.approx(expected)


def test_walks_step_to_neighbours_and_reach_all_of_them_evenly() -> None:
    model = build(orders=2)
    R = adjacency(model.graph)[:9, 9:]
    counts = torch.zeros(11, 11, dtype=torch.float64)
    for epoch in range(400):
        for drawn in model.batches(LOSS, batch_size=9, draw_by="pairs", seed=0, epoch=epoch):
            batch = drawn.whole()
            first, second = batch.positives.T
            assert (R[batch.users, first] == 1).all()
            counts.index_put_((first, second), torch.ones(()).double(), accumulate=True)
    visited = R.sum(0) > 0
    step = (R / R.sum(0).clamp(min=1)).T @ (R / R.sum(1, keepdim=True).clamp(min=1))
    observed = counts / counts.sum(1, keepdim=True).clamp(min=1)
    assert_close(observed[visited], step[visited], atol=0.06, rtol=0)


def test_walks_do_not_depend_on_the_size_of_the_batch() -> None:
    model = build(orders=3)
    small, large = (
        np.concatenate(
            [
                batch.whole().positives.numpy()
                for batch in model.batches(LOSS, batch_size=size, draw_by="pairs", seed=0, epoch=1)
            ]
        )
        for size in (4, 100)
    )
    assert np.array_equal(small, large)


def test_another_loss_than_bpr_is_refused() -> None:
    model = build()
    with pytest.raises(
        ConfigError, match="cannot be trained with loss = 'softmax'; choose one of: bpr"
    ):
        fit(model, TrainConfig(), Softmax(), seed=0)
