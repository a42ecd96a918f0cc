from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ltocf.models.cmn import CMN, sample_neighbours
from ltocf.scorers import memory_network
from tests.models.toys import adjacency, random_graph


def build(**settings: object) -> CMN:
    model = CMN(random_graph(), CMN.Config(dim=4, **settings)).double()
    model.initialise_(seed=1)
    nn.init.normal_(model.next_query.bias)
    nn.init.normal_(model.combine.bias)
    with torch.no_grad():
        model.weight.mul_(10)  # far enough from zero that attention matters
    return model


def dense_score(model: CMN, user: int, item: int) -> torch.Tensor:
    """The paper's two hops over all users who have the item, one pair at a time."""
    has = adjacency(model.graph)[:9, 9 + item].bool()
    has[user] = False
    asked, answers = model.weight[:9][has], model.memory[has]
    own, other = model.weight[user], model.weight[9 + item]
    z = own + other
    found = torch.softmax(asked @ z, 0) @ answers
    z = (model.next_query.weight @ z + found + model.next_query.bias).clamp(min=0)
    found = torch.softmax(asked @ z, 0) @ answers
    mixed = model.combine.weight @ torch.cat([own * other, found]) + model.combine.bias
    return model.output.weight[0] @ mixed.clamp(min=0)


def test_its_attention_is_that_of_a_dense_computation() -> None:
    model = build()
    users, items = torch.arange(9), torch.arange(11).expand(9, -1)
    expected = [[dense_score(model, user, item) for item in range(11)] for user in range(9)]
    expected_scores = torch.stack([torch.stack(row) for row in expected])
    assert_close(model.score(users, items), expected_scores)


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_ranking_in_blocks_scores_as_training_does(
    hops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_network, "ITEMS_AT_ONCE", 4)
    model = build(hops=hops)
    users, items = torch.tensor([8, 0, 3, 0]), torch.arange(11).expand(4, -1)
    ranked = torch.from_numpy(model.scorer()(users.numpy().astype(np.int32)))
    assert_close(ranked, model.score(users, items).detach())


def test_neighbours_are_distinct_users_of_the_item_up_to_the_cap() -> None:
    graph = random_graph()
    R = adjacency(graph)[:9, 9:]
    near = sample_neighbours(graph, 2)
    for item in range(11):
        found = [user for user in near[item].tolist() if user >= 0]
        assert len(set(found)) == len(found) == min(2, int(R[:, item].sum()))
        assert (R[found, item] == 1).all()


def test_it_starts_from_the_halved_vectors_of_another_model() -> None:
    model = build()
    theirs = torch.randn_like(model.weight)
    model.start_from_({"weight": theirs})
    assert_close(model.weight.detach(), theirs / 2)
