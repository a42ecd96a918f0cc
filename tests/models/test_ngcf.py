from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from ltocf.models.ngcf import NGCF
from tests.models.toys import adjacency, random_graph


def build(**settings: object) -> NGCF:
    model = NGCF(random_graph(), NGCF.Config(dim=8, **settings)).double().eval()
    model.initialise_(seed=1)
    return model


def row_stochastic(model: NGCF) -> torch.Tensor:
    with_loops = adjacency(model.graph) + torch.eye(model.graph.n_nodes, dtype=torch.float64)
    return with_loops / with_loops.sum(1, keepdim=True)


def test_with_identity_weights_and_no_nonlinearity_it_is_plain_propagation() -> None:
    model = build(layers=3, slope=1)
    with torch.no_grad():
        for from_sum, from_product in zip(model.sums, model.products, strict=True):
            nn.init.eye_(from_sum.weight)
            nn.init.zeros_(from_product.weight)
    step, layers = row_stochastic(model), [model.weight]
    for _ in range(3):
        layers.append(step @ layers[-1])
    expected = torch.cat([layers[0], *map(F.normalize, layers[1:])], 1)
    assert_close(model.embeddings(), expected)


def test_a_layer_is_the_papers_equation() -> None:
    model = build(layers=1)
    nn.init.normal_(model.sums[0].bias)
    nn.init.normal_(model.products[0].bias)
    near = row_stochastic(model) @ model.weight
    from_sum = near @ model.sums[0].weight.T + model.sums[0].bias
    from_product = (model.weight * near) @ model.products[0].weight.T + model.products[0].bias
    layer = F.leaky_relu(from_sum, 0.2) + F.leaky_relu(from_product, 0.2)
    layer = layer / layer.norm(dim=1, keepdim=True)
    assert_close(model.embeddings(), torch.cat([model.weight, layer], 1))


def test_dropout_acts_in_training_only_and_repeats_with_its_seed() -> None:
    model = build(dropout=0.5)
    calm = model.embeddings()
    model.train()
    model.before_step_(0, seed=3)
    first = model.embeddings()
    model.before_step_(0, seed=3)
    assert_close(model.embeddings(), first, rtol=0, atol=0)
    assert not torch.equal(first, calm)
