import math

import pytest
import torch

from ltocf.config import LOSSES
from ltocf.models.losses import bpr, bsl, score_loss, slatk, softmax

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


def test_slatk_weighs_each_positive_by_where_it_stands_to_the_users_threshold():
    def terms(positive, negatives, threshold):
        weight = 1 / (1 + math.exp(-(positive - threshold) / 0.25))
        total = sum(math.exp(score / 0.5) for score in (positive, *negatives))
        return -weight * math.log(math.exp(positive / 0.5) / total)

    expected = (terms(2, (1, 0), 1.5) + terms(-1, (1, 3), 2)) / 2
    positive, negative = torch.tensor([2.0, -1.0]), torch.tensor([[1.0, 0.0], [1.0, 3.0]])
    ours = slatk(positive, negative, torch.tensor([1.5, 2.0]), 0.5, 0.25)
    assert ours.item() == pytest.approx(expected)


def test_slatk_with_all_weights_one_is_softmax():
    below_all = torch.tensor([-math.inf])
    ours = slatk(POSITIVE, NEGATIVE, below_all, temperature=0.5, weight_temperature=1.0)
    assert torch.equal(ours, softmax(POSITIVE, NEGATIVE, temperature=0.5))


def test_the_gradient_of_slatk_is_that_of_its_formula():
    random = torch.Generator().manual_seed(0)
    positive, threshold = torch.randn(2, 5, dtype=torch.float64, generator=random)
    negative = torch.randn(5, 3, dtype=torch.float64, generator=random)
    arguments = positive.requires_grad_(), negative.requires_grad_(), threshold, 0.5, 0.7
    assert torch.autograd.gradcheck(slatk, arguments)


@pytest.mark.parametrize("name", LOSSES)
def test_a_better_positive_has_a_smaller_loss(name):
    def loss(positive):
        return score_loss(positive, NEGATIVE, LOSSES[name](), torch.tensor([1.0]))

    assert loss(POSITIVE + 1) < loss(POSITIVE)
