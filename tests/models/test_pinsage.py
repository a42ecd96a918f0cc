from __future__ import annotations

import torch
from torch import nn
from torch.testing import assert_close

from ltocf.graph.visits import visits
from ltocf.models.pinsage import PinSage
from tests.models.toys import adjacency, random_graph


def test_its_layers_are_those_of_a_dense_computation() -> None:
    model = PinSage(random_graph(), PinSage.Config(dim=8, layers=2)).double()
    model.initialise_(seed=1)
    for layer in (*model.pool, *model.combine):
        nn.init.normal_(layer.bias)
    B = adjacency(model.graph)
    mean = B / B.sum(1, keepdim=True).clamp(min=1)
    state = model.weight
    for pool, combine in zip(model.pool, model.combine, strict=True):
        near = mean @ (state @ pool.weight.T + pool.bias).clamp(min=0)
        own, other = combine.weight[:, :8], combine.weight[:, 8:]
        last = state @ own.T + near @ other.T + combine.bias
        state = last.clamp(min=0)
        state = state / state.norm(dim=1, keepdim=True).clamp(min=1e-12)
    assert_close(model.embeddings(), last)
    assert torch.isfinite(last).all()


def test_with_walks_it_pools_by_shares_of_visits() -> None:
    settings = {"dim": 8, "layers": 1, "walks": 40, "walk_length": 3, "neighbours": 5}
    model = PinSage(random_graph(), PinSage.Config(**settings)).double()
    model.initialise_(seed=1)
    state, (pool,), (combine,) = model.weight, model.pool, model.combine
    shares = torch.from_numpy(visits(model.graph, 40, 3, 5, seed=0).toarray()).double()
    near = shares @ (state @ pool.weight.T + pool.bias).clamp(min=0)
    expected = torch.cat([state, near], 1) @ combine.weight.T + combine.bias
    assert_close(model.embeddings(), expected)
    (by_hand,) = torch.autograd.grad(expected.square().sum(), state)
    (ours,) = torch.autograd.grad(model.embeddings().square().sum(), state)
    assert_close(ours, by_hand)
