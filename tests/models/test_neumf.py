from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ltocf.errors import ConfigError
from ltocf.models.neumf import NeuMF
from ltocf.scorers import networks
from tests.models.toys import random_graph


def build(**settings: object) -> NeuMF:
    model = NeuMF(random_graph(), NeuMF.Config(dim=4, width=5, **settings)).double().eval()
    model.initialise_(seed=1)
    nn.init.normal_(model.first.bias)
    return model


def test_a_score_is_the_network_over_both_vectors_and_their_product() -> None:
    model = build()
    user, item = model.weight[2], model.weight[9 + 6]
    x = torch.cat([user, item, user * item])
    x = (model.first.weight @ x + model.first.bias).clamp(min=0)
    x = (model.hidden[0].weight @ x + model.hidden[0].bias).clamp(min=0)
    expected = model.output.weight[0] @ x
    assert_close(model.score(torch.tensor([2]), torch.tensor([[6]]))[0, 0], expected)


@pytest.mark.parametrize("layers", [1, 3])
def test_ranking_in_blocks_scores_as_training_does(
    layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "ITEM_BLOCK", 4)
    model = build(layers=layers)
    users, items = torch.tensor([0, 3, 8]), torch.arange(11).expand(3, -1)
    ranked = torch.from_numpy(model.scorer()(users.numpy().astype(np.int32)))
    assert_close(ranked, model.score(users, items).detach())


def test_a_new_user_is_refused_with_what_to_use_instead() -> None:
    scorer = build().scorer()
    with pytest.raises(ConfigError, match="use ltocf, lightgcn or a closed form"):
        scorer.from_history(None)  # type: ignore[arg-type]
