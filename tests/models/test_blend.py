"""A blend against its members, one by one."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch.testing import assert_close

from ltocf.config import BPR, TrainConfig, to_toml
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.runs.settings import make_config
from ltocf.scorers.blend import standardise
from tests.models.toys import fit

MEMBERS = [
    {"model": "gfcf", "weight": 1.0, "options": {"rank": 4}},
    {"model": "sparse_ease", "weight": 0.5, "options": {"neighbours": 5}},
]
WITH_LTOCF = [*MEMBERS, {"model": "ltocf", "weight": 0.25, "options": {"dim": 8}}]
EVERYBODY = np.arange(20, dtype=np.int32)


@pytest.fixture
def graph() -> BipartiteGraph:
    rng = np.random.default_rng(5)
    pairs = rng.integers(0, 20, 120), rng.integers(0, 15, 120)
    return BipartiteGraph(Interactions.build(*pairs, user_ids=20, item_ids=15))


def test_a_blend_is_the_weighted_sum_of_its_standardised_parts(graph: BipartiteGraph) -> None:
    blend = build_model(graph, "blend", {"members": WITH_LTOCF})
    blend.initialise_(seed=3)
    expected = torch.zeros(20, 15)
    for member in WITH_LTOCF:
        model = build_model(graph, member["model"], member["options"])
        model.initialise_(seed=3)
        expected += member["weight"] * torch.from_numpy(standardise(model.scorer()(EVERYBODY)))
    assert_close(torch.from_numpy(blend.scorer()(EVERYBODY)), expected)


def test_standardised_rows_have_mean_0_and_deviation_1_and_constant_rows_vanish() -> None:
    rows = standardise(np.array([[1, 2, 6], [4, 4, 4]], np.float32))
    np.testing.assert_allclose(rows.mean(1), [0, 0], atol=1e-6)
    np.testing.assert_allclose(rows.std(1), [1, 0], rtol=1e-6)


def test_a_blend_of_closed_forms_scores_a_new_user_by_their_history(graph: BipartiteGraph) -> None:
    blend = build_model(graph, "blend", {"members": MEMBERS})
    blend.initialise_(seed=0)
    train = np.zeros((20, 15), dtype=np.float32)
    train[graph.interactions.users, graph.interactions.items] = 1
    scorer = blend.scorer()
    new = scorer.from_history(csr_array(train))
    np.testing.assert_allclose(new, scorer(EVERYBODY), atol=1e-5, rtol=1e-5)


def test_training_a_blend_trains_its_ltocf_as_alone(graph: BipartiteGraph) -> None:
    settings = TrainConfig(epochs=2, batch_size=32, protocol="fixed"), BPR(negatives=2)
    blend = build_model(graph, "blend", {"members": WITH_LTOCF})
    alone = build_model(graph, "ltocf", {"dim": 8})
    fit(blend, *settings, seed=0)
    fit(alone, *settings, seed=0)
    assert_close(blend.members[2].weight, alone.weight)
    assert_close(blend.members[2].times(), alone.times())


def test_a_blend_survives_saving_and_loading(graph: BipartiteGraph) -> None:
    blend, other = (build_model(graph, "blend", {"members": WITH_LTOCF}) for _ in range(2))
    blend.initialise_(seed=0)
    other.restore_(blend.fitted_state())
    np.testing.assert_array_equal(other.scorer()(EVERYBODY), blend.scorer()(EVERYBODY))


def test_the_parts_of_a_blend_are_written_as_toml_and_read_back() -> None:
    config = make_config({"model": {"name": "blend", "members": WITH_LTOCF}})
    assert make_config(tomllib.loads(to_toml(config))) == config


def test_an_unknown_part_and_an_unknown_option_of_a_part_are_refused(graph: BipartiteGraph) -> None:
    with pytest.raises(ConfigError, match="a blend cannot hold 'mf'; choose from: ltocf"):
        build_model(graph, "blend", {"members": [{"model": "mf", "weight": 1}]})
    wrong = {"model": "gfcf", "weight": 1, "options": {"ranks": 3}}
    with pytest.raises(ConfigError, match="unknown key 'ranks' in the blend's 'gfcf'"):
        build_model(graph, "blend", {"members": [wrong]})


def test_normalised_in_training_only_ranks_by_dot_product(graph: BipartiteGraph) -> None:
    plain, trained, cosine = (
        build_model(graph, "ltocf", {"dim": 8, "normalise": normalise})
        for normalise in (False, "training", True)
    )
    for model in (plain, trained, cosine):
        model.initialise_(seed=0)
    np.testing.assert_array_equal(trained.scorer()(EVERYBODY), plain.scorer()(EVERYBODY))
    batches = plain.batches(BPR(), batch_size=32, draw_by="users", seed=0, epoch=1)
    batch = next(drawn.whole() for drawn in batches)
    assert_close(trained.loss(batch, BPR()), cosine.loss(batch, BPR()))
    assert not torch.allclose(trained.loss(batch, BPR()), plain.loss(batch, BPR()))
