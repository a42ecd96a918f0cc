from __future__ import annotations

import torch
from torch.testing import assert_close

from ltocf.models.lightgcn import LightGCN
from tests.models.toys import adjacency, random_graph


def test_its_embeddings_are_the_mean_of_matrix_powers() -> None:
    model = LightGCN(random_graph(), LightGCN.Config(dim=8, layers=4, scale="natural")).double()
    model.initialise_(seed=1)
    B = adjacency(model.graph)
    root = B.sum(1).clamp(min=1).sqrt()
    A = B / root / root[:, None]
    powers = [torch.linalg.matrix_power(A, k) for k in range(5)]
    assert_close(model.embeddings(), torch.stack(powers).mean(0) @ model.weight)
