import math

import pytest
import torch

from ltocf.config import LOSSES
from ltocf.models.losses import bpr, bsl, score_loss, softmax

POSITIVE, NEGATIVE = torch.tensor([2.0]), torch.tensor([[1.0, 0.0]])


def test_bpr_is_minus_log_sigmoid_of_the_difference():
    expected = (math.log(1 + math.exp(-1)) + math.log(1 + math.exp(-2))) / 2
    assert bpr(POSITIVE, NEGATIVE).item() == pytest.approx(expected)


def test_softmax_is_cross_entropy_among_positive_and_negatives():
    e = math.exp
    expected = -math.log(e(4) / (e(4) + e(2) + e(0)))
    assert softmax(POSITIVE, NEGATIVE, temperature=0.5).item() == pytest.approx(expected)


def test_bsl_has_a_temperature_on_each_side():
    expected = math.log((math.exp(2) + math.exp(0)) / 2) - 2 / 0.25
    ours = bsl(POSITIVE, NEGATIVE, temperature=0.5, positive_temperature=0.25)
    assert ours.item() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["bpr", "softmax", "bsl"])
def test_a_better_positive_has_a_smaller_loss(name):
    config = LOSSES[name]()
    assert score_loss(POSITIVE + 1, NEGATIVE, config) < score_loss(POSITIVE, NEGATIVE, config)
