from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.testing import assert_close

from ltocf.models import build_model
from ltocf.models.hmlet import HMLET
from tests.models.toys import adjacency, random_graph


def make(**settings: object) -> HMLET:
    model = HMLET(random_graph(), HMLET.Config(dim=8, layers=3, **settings)).double()
    model.initialise_(seed=1)
    return model.eval()


def test_without_gates_it_is_lightgcn() -> None:
    model = make(gated=0)
    theirs = build_model(model.graph, "lightgcn", {"dim": 8, "layers": 3}).double()
    with torch.no_grad():
        theirs.get_parameter("weight").copy_(model.weight)
        assert_close(model.embeddings(), theirs.embeddings(), atol=1e-12, rtol=0)


def test_with_a_straight_activation_the_choice_makes_no_difference() -> None:
    model, without = make(gated=2, slope=1.0), make(gated=0)
    with torch.no_grad():
        without.weight.copy_(model.weight)
        assert_close(model.embeddings(), without.embeddings(), atol=1e-12, rtol=0)


def test_a_gate_that_prefers_the_bent_row_gets_it() -> None:
    model = make(gated=1, slope=0.2)
    with torch.no_grad():
        last = model.gates[0][2]
        last.weight.zero_()
        last.bias.copy_(torch.tensor([0.0, 1.0]))
        pairs = adjacency(model.graph)
        A = pairs / pairs.sum(1).clamp(min=1).sqrt() / pairs.sum(1).clamp(min=1).sqrt()[:, None]
        first, second = A @ model.weight, A @ A @ model.weight
        third = F.leaky_relu(A @ second, 0.2)
        expected = (model.weight + first + second + third) / 4
        assert_close(model.embeddings(), expected, atol=1e-12, rtol=0)


def test_a_gate_learns_though_it_chooses() -> None:
    model = make(gated=2, slope=0.2).train()
    model.before_step_(0.5, seed=3)
    model.embeddings().square().sum().backward()
    of_gates = [p for name, p in model.named_parameters() if name.startswith("gates")]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in of_gates)
    model.before_step_(0.5, seed=3)
    again = model.embeddings()
    model.before_step_(0.5, seed=3)
    assert_close(model.embeddings(), again, atol=0, rtol=0)
