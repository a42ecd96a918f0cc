"""A whole training by four processes that share rows and columns, against one process."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ltocf.batches.own_pairs import OwnPairs
from ltocf.batches.triples import TripleBatches
from ltocf.config import BPR, LOSSES, SLatK, Softmax, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.progress import silent
from ltocf.training.over_grid import _check
from ltocf.training.trainer import Trainer
from tests.test_distributed import start

USERS, ITEMS, DIM, PAIRS, EPOCHS, SEED = 60, 41, 16, 400, 3, 5
MODEL = {
    "dim": DIM, "learn_times": "training", "time_learning_rate": 0.05, "time_every": 2,
    "end_time": 2.5, "popularity": 0.0,
}  # fmt: skip
LEARNING_RATE = 0.01
HARDEST = {"name": "bpr", "negatives": 4, "sampling": "hardest", "l2": 0.01}
SOFTMAX = {"name": "softmax", "negatives": 3, "sampling": "uniform", "l2": 0.02}


def made_pairs() -> Interactions:
    random = np.random.default_rng(0)
    drawn = random.integers(0, USERS, PAIRS), random.integers(0, ITEMS, PAIRS)
    return Interactions.build(*drawn, user_ids=USERS, item_ids=ITEMS)


@pytest.mark.parametrize(
    ("row_groups", "column_groups", "options", "batch_size"),
    # In batches of six pairs, one group of rows sometimes has none.
    [(2, 2, HARDEST, 90), (2, 2, SOFTMAX, 6)],
)
def test_a_grid_of_processes_trains_as_one_does(
    tmp_path: Path,
    row_groups: int,
    column_groups: int,
    options: dict[str, object],
    batch_size: int,
) -> None:
    train, random = made_pairs(), np.random.default_rng(1)
    weight = 0.1 * random.standard_normal((USERS + ITEMS, DIM))
    np.savez(
        tmp_path / "given.npz", users=train.users, items=train.items, sizes=[USERS, ITEMS],
        weight=weight,
    )  # fmt: skip
    settings = {"batch_size": batch_size, "learning_rate": LEARNING_RATE}
    asked = {
        "model": MODEL, "train": settings, "loss": options, "negatives": options["negatives"],
        "l2": options["l2"], "seed": SEED, "epochs": EPOCHS,
    }  # fmt: skip
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    worker = Path(__file__).parent / "grid_training_worker.py"
    done = start(4, tmp_path, row_groups, column_groups, script=worker)
    assert done.returncode == 0, done.stderr
    parts = [np.load(tmp_path / f"{rank}.npz") for rank in range(4)]

    model = build_model(BipartiteGraph(train), "ltocf", MODEL).double()
    before = model.times().detach().numpy()
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(weight))
    loss = LOSSES[str(options["name"])](**{k: v for k, v in options.items() if k != "name"})
    trainer = Trainer(model, TrainConfig(**settings), loss, SEED, EPOCHS)
    losses = [trainer.run_epoch(epoch, silent) for epoch in range(1, EPOCHS + 1)]
    times = model.times().detach().numpy()
    assert np.abs(times - before).max() > 0.01  # they have learned something
    for part in parts:
        n_batches = -(-len(train) // batch_size)
        np.testing.assert_allclose(part["losses"], losses, rtol=1e-9)
        np.testing.assert_allclose(part["times"], times, rtol=1e-8)
        expected = model.weight.detach().numpy()[np.ix_(part["rows"], part["columns"])]
        found = part["weight"]
        np.testing.assert_allclose(found[: len(part["rows"])], expected, atol=1e-8)
        assert not found[len(part["rows"]) :].any()
        assert len(part["steps"]) == EPOCHS * n_batches
        assert (part["steps"][:, 0] == part["steps"][:, 1]).all()


def test_processes_draw_together_what_one_draws() -> None:
    train = made_pairs()
    asked = {"batch_size": 90, "negatives": 3, "seed": 4, "epoch": 2}
    whole = [batch.whole() for batch in TripleBatches(train, **asked)]
    drawn = []
    for group in range(3):
        mine = train.users % 3 == group
        own = OwnPairs(
            train.users[mine] // 3, train.items[mine], np.flatnonzero(mine),
            n_pairs=len(train), n_users=USERS // 3, n_items=ITEMS,
        )  # fmt: skip
        drawn.append([
            [(3 * users + group, *rest) for users, *rest in chunks]
            for _, chunks in own.epoch(**asked)
        ])  # fmt: skip
    for number, batch in enumerate(whole):
        parts = [chunk for of_group in drawn for chunk in of_group[number]]
        rows = np.concatenate([np.column_stack(part) for part in parts])
        expected = np.column_stack([column.numpy() for column in batch[:3]])
        assert sorted(rows.tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize(
    ("model", "loss", "train"),
    [
        ({"learn_times": "held-out"}, BPR(), TrainConfig()),
        ({"learn_times": False, "normalise": True}, BPR(), TrainConfig()),
        ({"learn_times": False}, Softmax(), TrainConfig()),
        ({"learn_times": False}, SLatK(sampling="uniform"), TrainConfig()),
        ({"learn_times": False}, BPR(), TrainConfig(draw_by="users")),
    ],
)
def test_what_a_grid_cannot_train_is_refused(model, loss, train) -> None:
    with pytest.raises(ConfigError, match="over a grid"):
        _check(build_model(BipartiteGraph(made_pairs()), "ltocf", model), loss, train)
