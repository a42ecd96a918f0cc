"""LT-OCF and LightGCN on a graph small enough to write A down."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch.testing import assert_close

from ltocf.config import TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.lightgcn import LightGCN
from ltocf.models.ltocf import LTOCF


@pytest.fixture
def graph() -> BipartiteGraph:
    rng = np.random.default_rng(3)
    return BipartiteGraph(
        Interactions.build(rng.integers(0, 8, 25), rng.integers(0, 10, 25), user_ids=9, item_ids=11)
    )


def build(graph: BipartiteGraph, **settings: object) -> LTOCF:
    model = LTOCF(graph, LTOCF.Config(dim=8, tolerance=1e-13, **settings)).double()
    model.initialise_(seed=1)
    return model


def test_euler_with_unit_steps_is_lightgcn(graph: BipartiteGraph) -> None:
    ours = build(graph, solver="euler", end_time=4, time_points=3, scale="natural")
    theirs = LightGCN(graph, LightGCN.Config(dim=8, layers=4)).double()
    theirs.initialise_(seed=1)
    assert_close(ours.embeddings(), theirs.embeddings(), rtol=0, atol=1e-13)


def test_lightgcn_is_the_mean_of_its_layers(graph: BipartiteGraph) -> None:
    model = LightGCN(graph, LightGCN.Config(dim=8, layers=3, scale="natural")).double()
    model.initialise_(seed=0)
    layers = [model.weight]
    for _ in range(3):
        layers.append(graph @ layers[-1])
    assert_close(model.embeddings(), torch.stack(layers).mean(0), rtol=0, atol=1e-13)


@pytest.mark.parametrize("propagation", ["spectral", "reference"])
def test_the_scale_is_the_response_at_one(graph: BipartiteGraph, propagation: str) -> None:
    natural = build(graph, start="random", scale="natural", propagation=propagation)
    scaled = build(graph, start="random", scale=3.0, propagation=propagation)
    at_one = natural.natural_response(torch.ones(1, dtype=torch.float64)).detach()
    assert_close(scaled.embeddings(), natural.embeddings() * (3 / at_one), rtol=0, atol=1e-12)
    assert_close(scaled.coefficients().sum().detach(), torch.tensor(3.0).double())


@pytest.mark.parametrize("kind", [LTOCF, LightGCN])
def test_the_start_scores_as_the_spectrum_does_at_any_scale(
    graph: BipartiteGraph, kind: type[LTOCF | LightGCN]
) -> None:
    finals = []
    for scale in (1.0, 12.7):
        model = kind(graph, kind.Config(dim=4, scale=scale)).double()
        with torch.no_grad():
            model.weight.copy_(model._spectral_start())
        finals.append(model.embeddings().detach())
    assert_close(finals[0], finals[1], rtol=1e-5, atol=1e-6)


def test_a_new_user_with_a_known_history_gets_that_users_vector(graph: BipartiteGraph) -> None:
    model = build(graph)
    with torch.no_grad():
        model.weight[: graph.n_users] = 0  # then only the history speaks
    final, history = model.embeddings(), torch.from_numpy(model.fold_in().history)
    train = graph.interactions
    for user in range(graph.n_users):
        items = torch.from_numpy(train.items_of(user)).long()
        degrees = torch.from_numpy(train.item_degrees)[items].double() * max(len(items), 1)
        assert_close(
            final[user], (history[items] / degrees.sqrt()[:, None]).sum(0), atol=1e-12, rtol=0
        )


def test_learned_times_are_saved_and_restored(graph: BipartiteGraph) -> None:
    model, other = build(graph), build(graph)
    with torch.no_grad():
        model.times.move_to_(torch.tensor([0, 0.5, 1.25, 3.5, 4.5]))
    other.load_state_dict(model.state_dict())
    assert_close(other.embeddings(), model.embeddings(), rtol=0, atol=0)


def final_state(graph: BipartiteGraph, **settings: object) -> torch.Tensor:
    """exp(2.5 A) E as the solver has it: only the state at the end counts."""
    plain = {"start": "random", "scale": "natural", "connection": "residual"}
    model = build(graph, end_time=2.5, times=(), weights=(0.0, 1.0), **plain, **settings)
    return model.embeddings().detach()


def exponential(graph: BipartiteGraph) -> torch.Tensor:
    A = (graph @ torch.eye(graph.n_nodes, dtype=torch.float64)).numpy()
    return (
        torch.from_numpy(scipy.linalg.expm(2.5 * A)) @ build(graph, start="random").weight.detach()
    )


@pytest.mark.parametrize(
    ("solver", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4), ("adams_moulton", 4)]
)
def test_solvers_converge_to_the_matrix_exponential(
    graph: BipartiteGraph, solver: str, order: int
) -> None:
    errors = [
        (final_state(graph, solver=solver, steps_per_interval=steps) - exponential(graph)).norm()
        for steps in (32, 64)
    ]
    assert abs(torch.log2(errors[0] / errors[1]).item() - order) < 0.15


def test_the_exact_solver_is_the_matrix_exponential(graph: BipartiteGraph) -> None:
    assert_close(final_state(graph, solver="exact"), exponential(graph), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("kind", "factor"), [("held-out", 0.5), ("training", 1), (False, 1)])
def test_times_of_an_eighth_of_the_pairs_are_carried_over(
    graph: BipartiteGraph, kind: str | bool, factor: float
) -> None:
    whole = graph.interactions
    few = whole.select(np.arange(len(whole)) < len(whole) // 8)
    whole = whole.select(np.arange(len(whole)) < 8 * (len(whole) // 8))
    learned = LTOCF(BipartiteGraph(few), LTOCF.Config(dim=8, end_time=6, times=(1.0, 3.0)))
    config = LTOCF.Config(dim=8, end_time=4, time_points=2, learn_times=kind)
    model = LTOCF(BipartiteGraph(whole), config)
    model.take_learned_from_(learned)
    assert_close(model.times(), factor * learned.times(), rtol=1e-12, atol=0, check_dtype=False)
    as_given = LTOCF(BipartiteGraph(whole), learned.config.model_copy(update={"learn_times": kind}))
    as_given.take_learned_from_(learned)  # which nobody has moved
    assert_close(as_given.times(), learned.times(), rtol=1e-12, atol=0)


def test_fixed_times_are_in_no_parameter_group(graph: BipartiteGraph) -> None:
    assert "times" not in build(graph, learn_times=False).parameter_groups(TrainConfig())
    groups = build(graph, learn_times="training").parameter_groups(TrainConfig())
    assert [p.shape for p in groups["times"].parameters] == [(3,)]


def test_an_unknown_solver_is_refused_with_the_choices(graph: BipartiteGraph) -> None:
    with pytest.raises(ConfigError, match="unknown solver 'rk5'; choose one of: euler"):
        LTOCF.Config(solver="rk5")


def test_the_number_of_weights_must_fit_the_times(graph: BipartiteGraph) -> None:
    with pytest.raises(ConfigError, match="must be 5 numbers"):
        LTOCF.Config(weights=(0.5, 0.5))


def test_a_spectral_start_is_no_larger_where_a_deep_response_vanishes(hamlet):
    graph = BipartiteGraph(hamlet.split.train)
    starts = {}
    for end in (4.0, 40.0):
        model = LTOCF(graph, LTOCF.Config(dim=40, end_time=end))
        model.draw_(0)
        starts[end] = model.weight.detach()
        final = model.embeddings().detach()
        assert final.square().mean().sqrt() < 2 * model.config.initial_std
    # The final vectors are of the usual size, and the response is 12.7 at most.
    assert starts[40.0].abs().max() < 100 * starts[4.0].abs().max()


@pytest.mark.parametrize("name", ["ltocf", "lightgcn", "mf"])
def test_a_spectral_start_scores_like_the_best_low_rank_approximation(name, hamlet):
    train = hamlet.split.train
    model = build_model(BipartiteGraph(train), name, {"dim": 12, "start": "spectral"})
    model.initialise_(0)
    N = np.zeros((train.n_users, train.n_items))
    degrees = train.user_degrees[train.users] * train.item_degrees[train.items]
    N[train.users, train.items] = degrees**-0.5
    U, s, Vt = np.linalg.svd(N)
    expected = (U[:, :12] * s[:12]) @ Vt[:12]
    scores = model.scorer()(np.arange(train.n_users, dtype=np.int32))
    correlation = np.corrcoef(scores.ravel(), expected.ravel())[0, 1]
    assert correlation > 0.97  # less than 1 for the noise


@pytest.mark.parametrize("solver", ["euler", "midpoint", "rk4", "adams_moulton", "exact"])
def test_heat_diffusion_smooths_however_long_the_interval(
    graph: BipartiteGraph, solver: str
) -> None:
    config = {"solver": solver, "operator": "laplacian", "end_time": 12.0, "learn_times": False}
    model = LTOCF(graph, LTOCF.Config(dim=4, connection="residual", scale="natural", **config))
    x = torch.linspace(-1, 1, 41, dtype=torch.float64)
    response = model.natural_response(x).detach().abs()
    assert response.argmax() == 40  # with too long a step, the roughest would grow most
    assert response.max() <= 1


def test_steps_that_are_too_long_for_diffusion_are_refused_with_their_number(
    graph: BipartiteGraph,
) -> None:
    config = {
        "operator": "laplacian", "end_time": 8.0, "steps_per_interval": 1, "learn_times": False,
    }  # fmt: skip
    with pytest.raises(ConfigError, match="set steps_per_interval=2"):
        LTOCF(graph, LTOCF.Config(dim=4, **config)).response(torch.ones(1).double())
