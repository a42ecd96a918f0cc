from __future__ import annotations

import torch
from torch import nn
from torch.testing import assert_close

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
