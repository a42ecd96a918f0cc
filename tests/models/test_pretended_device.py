"""What would run on a GPU, on a device that is pretended: no hardware has been met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltocf.batches.ahead import ChunkedBatch
from ltocf.config import BPR, Loss, Softmax
from ltocf.data.interactions import Interactions
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import MODELS, build_model
from ltocf.models.base import Model
from tests.models.pretended_device import Elsewhere, PretendedDevice, inside, move_
from tests.models.toys import random_graph

LOSSES = [BPR(negatives=4), BPR(negatives=4, sampling="uniform", l2=1e-2), Softmax(negatives=8)]
ON_GPU = [name for name, model in MODELS.items() if model.trains_on_gpu]


def gradients(model: Model, loss: Loss) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """With the loss as what it was computed in, since it is rounded as that."""
    arguments: dict[str, Any] = {"batch_size": 16, "draw_by": "pairs", "seed": 0, "epoch": 1}
    model.before_step_(0.5, seed=0)
    for batch in model.batches(loss, **arguments):
        value = model.add_gradients_(batch, loss)
    loss_value = torch.tensor(value, dtype=torch.float32, device="cpu")
    return loss_value, {
        n: inside(p.grad) for n, p in model.named_parameters() if p.grad is not None
    }


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("name", ON_GPU)
def test_a_step_elsewhere_is_the_step_on_the_cpu(name: str, loss: Loss) -> None:
    here, there = (build_model(random_graph(), name, {"dim": 8}) for _ in range(2))
    for model in (here, there):
        model.initialise_(seed=0)
    expected = gradients(here, loss)
    move_(there)
    with PretendedDevice():
        found = gradients(there, loss)
    assert_close(found, expected)


def test_a_step_elsewhere_makes_nothing_on_the_cpu_but_scalars_and_the_drawn_rows() -> None:
    """The response is computed for 32 numbers, of which a least-squares fit has 32 columns."""
    random = np.random.default_rng(0)
    pairs = Interactions.build(*random.integers(0, 1500, (2, 4000)), user_ids=1500, item_ids=1500)
    model = build_model(BipartiteGraph(pairs), "ltocf", {"dim": 8, "start": "random"})
    model.initialise_(seed=0)
    move_(model)
    batches = model.batches(BPR(), batch_size=4000, draw_by="pairs", seed=0, epoch=1)
    (rows,) = [batch.whole() for batch in batches]
    with PretendedDevice() as device:
        model.add_gradients_(
            ChunkedBatch.of(rows), BPR()
        )  # makes the graph's matrix, which is kept
        device.made.clear()
        model.add_gradients_(ChunkedBatch.of(rows), BPR())
    assert max(device.made.values(), default=0) <= 32 * 32 < model.graph.n_nodes


def test_operands_on_two_devices_are_refused() -> None:
    there = Elsewhere(torch.ones(3))
    with PretendedDevice(), pytest.raises(RuntimeError, match="operands on meta"):
        there + torch.ones(3)
    with pytest.raises(RuntimeError):
        there.numpy()
