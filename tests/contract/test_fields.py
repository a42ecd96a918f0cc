"""Every setting of every model changes something, or is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.config import BPR, BSL, SLatK, Softmax, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import MODELS, build_model
from tests.models.toys import fit

# Another value than the default, and what else must be set for it to matter.
OTHER: dict[str, Any] = {
    "alpha": 0.3, "anneal": 0.9, "average": True, "beta": 0.9, "by_degree": True,
    "connection": "residual", "degree": 1, "degree_power": 0.1, "dim": 5, "dropout": 0.4,
    "end_time": 2.0, "filter": "second", "flatness": 2.5, "hidden": 7, "hops": 3,
    "ideal_weight": 0.7, "initial_std": 0.3, "l2": 7.0, "latent": 3, "layers": 1,
    "learn_times": "training", "scale": 4.0, "normalisation": "symmetric",
    "margin": False, "merge": "late", "neighbours": 2, "network_l2": 0.5,
    "normalise": True, "operator": "laplacian", "order": 3, "orders": 1, "power": 0.3, "rank": 2,
    "recency": 0.8, "rtol": 0.1, "shrinkage": 1.0, "slope": 0.9, "smoothness": 0.5,
    "solver": "euler", "start": "random", "step_size": 0.3, "steps": 3, "steps_per_interval": 3,
    "time_every": 1, "time_learning_rate": 0.3, "time_points": 1, "time_updates": "joint",
    "times": (0.5, 1.0, 3.5), "tolerance": 0.5, "walk_length": 2, "walks": 6,
    "weights": "learnable",
    "width": 5, "atol": 0.5, "self_weight": 0.2, "user_power": 0.5, "item_power": 0.4,
    "window": 2, "decay": 1.0, "backward": 0.1, "from_power": 0.9, "to_power": 0.9, "memory": 1.0,
    "shared": 0.3, "popularity_power": 1.0, "learned_tags": 2, "popularity": 0.5,
    "tag_weight": 2.0, "recent": 0.4, "gated": 0, "temperature": 5.0,
    "rounds": 2, "unobserved_weight": 0.5, "frequency_power": 0.2,
    "members": [{"model": "gfcf", "weight": 1.0, "options": {"rank": 3}}],
}  # fmt: skip
BESIDE: dict[str, dict[str, Any]] = {
    "by_degree": {"smoothness": 0.5},
    "rtol": {"solver": "dormand_prince", "atol": 1e-9},
    "atol": {"solver": "dormand_prince", "rtol": 1e-9},
    "walk_length": {"walks": 6},
    "learn_times": {"time_every": 1},
    "time_every": {"learn_times": "training"},
    "time_learning_rate": {"time_every": 1, "learn_times": "training"},
    "time_updates": {"time_every": 3, "learn_times": "training"},
}
# Where a walk's length or the number of kept nodes counts, there must be walks.
BESIDE_IN_PINSAGE = {"neighbours": {"walks": 6}}
SAME_BY_DESIGN = {
    ("ltocf", "propagation"): "the reference path has the same answers: tests/ode/test_reference",
    ("ease", "gigabytes"): "a limit: tests/models/test_itemitem shows that it refuses",
    ("turbocf", "gigabytes"): "whether Q is kept or made again changes memory, not scores",
}
TRAIN = TrainConfig(epochs=2, batch_size=8, learning_rate=0.05, protocol="fixed")
LOSS = BPR(negatives=3, sampling="uniform")


def graph() -> BipartiteGraph:
    """Two overlapping communities whose pairs have times, and items with tags."""
    random = np.random.default_rng(5)
    users, items = np.nonzero(random.random((14, 12)) < 0.45)
    times = random.integers(0, 50, len(users)).astype(np.int64)
    tags = csr_array((random.random((12, 5)) < 0.4).astype(np.float32))
    return BipartiteGraph(Interactions.build(users, items, 14, 12, times).with_item_tags(tags))


def settings_of(name: str) -> dict[str, Any]:
    fields = MODELS[name].Config.model_fields
    return {key: 4 for key in ("dim", "rank") if key in fields}


@cache
def scores(name: str, *changes: tuple[str, Any]) -> Tensor:
    options = settings_of(name) | {k: _thawed(v) for k, v in changes}
    model = build_model(graph(), name, options)
    fit(model, TRAIN, LOSS, seed=0)
    return torch.from_numpy(model.scorer()(np.arange(14, dtype=np.int32)))


def _frozen(value: Any) -> Any:
    return repr(value) if isinstance(value, list) else value


def _thawed(value: Any) -> Any:
    return OTHER["members"] if value == repr(OTHER["members"]) else value


CASES = [
    (name, field)
    for name, kind in MODELS.items()
    for field in kind.Config.model_fields
    if (name, field) not in SAME_BY_DESIGN
]


@pytest.mark.parametrize(("name", "field"), CASES, ids=lambda value: value)
def test_every_setting_of_every_model_changes_its_scores(name: str, field: str) -> None:
    beside = BESIDE_IN_PINSAGE.get(field, {}) if name == "pinsage" else {}
    beside = beside | {
        key: value
        for key, value in BESIDE.get(field, {}).items()
        if key in MODELS[name].Config.model_fields
    }
    plain = scores(name, *beside.items())
    changed = scores(name, *(beside | {field: _frozen(OTHER[field])}).items())
    assert plain.shape == changed.shape
    assert not torch.allclose(plain, changed, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "blend"])
@pytest.mark.parametrize("field", ["start", "normalise", "l2", "negatives"])
def test_a_setting_that_a_model_does_not_have_is_refused(name: str, field: str) -> None:
    if field not in MODELS[name].Config.model_fields:
        with pytest.raises(ConfigError, match=f"unknown key '{field}'"):
            build_model(graph(), name, {field: 1})


@pytest.mark.parametrize(
    ("loss", "change"),
    [
        (loss, {field: value})
        for loss in (
            BPR(negatives=3),
            Softmax(negatives=5),
            BSL(negatives=5),
            SLatK(negatives=5, k=3, refresh_every=1),
        )
        for field, value in {
            "negatives": 2, "sampling": "uniform", "l2": 0.5, "temperature": 0.9,
            "positive_temperature": 0.9, "weight_temperature": 0.1, "k": 8, "sample": 4,
            "refresh_every": 2,
        }.items()
        if field in type(loss).model_fields
    ],
    ids=str,
)  # fmt: skip
def test_every_setting_of_every_loss_changes_the_scores(loss: Any, change: dict[str, Any]) -> None:
    found = []
    for kind in (loss, loss.model_copy(update=change)):
        model = build_model(graph(), "lightgcn", {"dim": 4})
        fit(model, TRAIN, kind, seed=0)
        found.append(torch.from_numpy(model.scorer()(np.arange(14, dtype=np.int32))))
    assert not torch.allclose(*found, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 1}, {"batch_size": 20}, {"draw_by": "users"}, {"learning_rate": 0.01},
        {"schedule": "constant"}, {"average_decay": 0.9},
    ],
    ids=str,
)  # fmt: skip
def test_every_setting_of_training_changes_the_scores(change: dict[str, Any]) -> None:
    found = []
    for config in (TRAIN, TRAIN.model_copy(update=change)):
        model = build_model(graph(), "lightgcn", {"dim": 4})
        fit(model, config, LOSS, seed=0)
        found.append(torch.from_numpy(model.scorer()(np.arange(14, dtype=np.int32))))
    assert not torch.allclose(*found, rtol=1e-4, atol=1e-6)
