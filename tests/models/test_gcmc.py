from __future__ import annotations

import torch
from torch import nn
from torch.testing import assert_close

from ltocf.models.gcmc import GCMC
from tests.models.toys import adjacency, random_graph


def test_its_layers_are_those_of_a_dense_computation() -> None:
    model = GCMC(random_graph(), GCMC.Config(dim=8)).double().eval()
    model.initialise_(seed=1)
    nn.init.normal_(model.convolve.bias)
    nn.init.normal_(model.dense.bias)
    B = adjacency(model.graph)
    near = B @ model.weight / B.sum(1, keepdim=True).clamp(min=1)
    hidden = near @ model.convolve.weight.T + model.convolve.bias
    hidden = torch.where(hidden > 0, hidden, 0.2 * hidden)
    assert_close(model.embeddings(), hidden @ model.dense.weight.T + model.dense.bias)
