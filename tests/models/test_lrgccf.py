from __future__ import annotations

import numpy as np
import torch
from torch.testing import assert_close

from ltocf.models.lrgccf import LRGCCF
from tests.models.toys import adjacency, random_graph


def test_its_score_is_the_sum_of_its_layers_scores() -> None:
    graph = random_graph()
    model = LRGCCF(graph, LRGCCF.Config(dim=8, layers=3)).double()
    model.initialise_(seed=1)
    with_loops = adjacency(graph) + torch.eye(graph.n_nodes, dtype=torch.float64)
    root = with_loops.sum(1).sqrt()
    step = with_loops / root / root[:, None]
    layer, expected = model.weight, torch.zeros(9, 11, dtype=torch.float64)
    for _ in range(4):
        users, items = graph.split(layer)
        expected = expected + users @ items.T
        layer = step @ layer
    assert_close(torch.from_numpy(model.scorer()(np.arange(9, dtype=np.int32))), expected.detach())
