from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ltocf.models.gcmc import GCMC, GCMCConfig
from tests.models.toys import adjacency, random_graph


@pytest.mark.parametrize("normalisation", ["mean", "symmetric"])
def test_its_layers_are_those_of_a_dense_computation(
    normalisation: Literal["mean", "symmetric"],
) -> None:
    config = GCMCConfig(dim=8, normalisation=normalisation)
    model = GCMC(random_graph(), config).double().eval()
    model.initialise_(seed=1)
    nn.init.normal_(model.convolve.bias)
    nn.init.normal_(model.dense.bias)
    B = adjacency(model.graph)
    degrees = B.sum(1, keepdim=True).clamp(min=1)
    near = B @ model.weight / degrees
    if normalisation == "symmetric":
        near = degrees.rsqrt() * (B @ (degrees.rsqrt() * model.weight))
    hidden = near @ model.convolve.weight.T + model.convolve.bias
    hidden = torch.where(hidden > 0, hidden, 0.2 * hidden)
    assert_close(model.embeddings(), hidden @ model.dense.weight.T + model.dense.bias)
