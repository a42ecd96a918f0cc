"""GF-CF, BSPM, ChebyCF and SVD-AE on a graph small enough to write the item graph down."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.testing import assert_close
from torchdiffeq import odeint

from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.bspm import BSPM
from ltocf.models.chebycf import ChebyCF
from ltocf.models.gfcf import GFCF
from ltocf.models.svdae import SVDAE


@pytest.fixture(scope="module")
def graph() -> BipartiteGraph:
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, 14, 60), rng.integers(0, 17, 60)
    return BipartiteGraph(Interactions.build(*pairs, user_ids=15, item_ids=18))


@pytest.fixture(scope="module")
def R(graph: BipartiteGraph) -> Tensor:
    matrix = torch.zeros(graph.n_users, graph.n_items, dtype=torch.float64)
    matrix[graph.interactions.users, graph.interactions.items] = 1
    return matrix


@pytest.fixture(scope="module")
def N(R: Tensor) -> Tensor:
    users, items = R.sum(1).clamp(min=1), R.sum(0).clamp(min=1)
    return R / users.sqrt()[:, None] / items.sqrt()


def scores(model: GFCF | BSPM | ChebyCF | SVDAE) -> Tensor:
    model.initialise_(seed=0)
    return torch.from_numpy(model.scorer()(np.arange(model.graph.n_users, dtype=np.int32))).double()


def scores_of(model: GFCF, start: int, stop: int) -> Tensor:
    return torch.from_numpy(model.scorer()(np.arange(start, stop, dtype=np.int32))).double()


def ideal(R: Tensor, N: Tensor, rank: int, power: float) -> Tensor:
    V = torch.linalg.svd(N)[2][:rank].T
    degrees = R.sum(0)
    before = torch.where(degrees > 0, degrees**-power, 0)
    return (R * before) @ V @ V.T * degrees**power


def test_gfcf_is_one_step_plus_the_ideal_filter(
    graph: BipartiteGraph, R: Tensor, N: Tensor
) -> None:
    expected = R @ N.T @ N + 0.3 * ideal(R, N, 5, 0.5)
    assert_close(scores(GFCF(graph, GFCF.Config(rank=5))), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("share", [0.0, 1e9])
def test_gfcf_scores_alike_from_neighbours_and_from_all_pairs(
    graph: BipartiteGraph, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = GFCF(graph, GFCF.Config(rank=5))
    expected = scores(model)
    monkeypatch.setattr("ltocf.scorers.item_filter.REACHED", share)
    some = [scores_of(model, start, start + 3) for start in range(0, graph.n_users, 3)]
    assert_close(torch.cat(some), expected, atol=1e-6, rtol=0)


def test_gfcf_without_the_ideal_filter_is_one_step(
    graph: BipartiteGraph, R: Tensor, N: Tensor
) -> None:
    ours = scores(GFCF(graph, GFCF.Config(ideal_weight=0)))
    assert_close(ours, R @ N.T @ N, atol=1e-5, rtol=0)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("merge", ["early", "late"])
@pytest.mark.parametrize(("solver", "steps"), [("euler", 1), ("rk4", 1), ("rk4", 2)])
def test_bspm_sharpens_as_torchdiffeq_does_on_the_dense_matrix(
    graph: BipartiteGraph, R: Tensor, N: Tensor, merge: str, solver: str, steps: int, average: bool
) -> None:
    P, blurred = N.T @ N, R @ N.T @ N
    extra = 0.2 * ideal(R, N, 5, 0.5)
    start = blurred + extra if merge == "early" else blurred
    options = {"step_size": 2.5 / steps}
    # torchdiffeq's "rk4" is the 3/8 rule; on a linear ODE every fourth-order four-stage
    # method is the same polynomial.
    times = torch.tensor([0.0, 2.5], dtype=torch.float64)
    end = odeint(lambda t, y: -y @ P, start, times, method=solver, options=options)[-1]
    expected = (blurred + end) / 2 if average else end
    if merge == "late":
        expected = expected + extra
    config = BSPM.Config(merge=merge, solver=solver, steps=steps, rank=5, average=average, degree=9)
    assert_close(scores(BSPM(graph, config)), expected, atol=1e-4, rtol=0)


def eigen_chebycf(R: Tensor, N: Tensor, order: int, flatness: float, rank: int) -> Tensor:
    """h(P) through all eigenvectors, h by solving for the interpolant instead of a transform."""
    k = torch.arange(order + 1, dtype=torch.float64)
    zeros = torch.cos(torch.pi * (k + 0.5) / (order + 1))
    extrema = torch.cos(torch.pi * k / order)
    plateau = torch.where(extrema < 0, 1 + (-extrema) ** flatness, 1 - extrema**flatness) / 2
    values, vectors = torch.linalg.eigh(N.T @ N)
    monomials = torch.linalg.solve(torch.vander(zeros), plateau)
    h = torch.vander(1 - 2 * values.clamp(0, 1), order + 1) @ monomials
    degrees = R.sum(0)
    before = torch.where(degrees > 0, degrees**-0.4, 0)
    filtered = (R * before) @ vectors @ torch.diag(h) @ vectors.T * degrees**0.4
    return filtered + 0.2 * ideal(R, N, rank, 0.4)


def test_chebycf_is_its_response_on_the_eigenvalues(
    graph: BipartiteGraph, R: Tensor, N: Tensor
) -> None:
    ours = scores(ChebyCF(graph, ChebyCF.Config(rank=5, degree=8)))
    assert_close(ours, eigen_chebycf(R, N, 8, 1.5, 5), atol=1e-4, rtol=0)


def test_chebycf_deflated_by_every_singular_vector_needs_no_degree(
    graph: BipartiteGraph, R: Tensor, N: Tensor
) -> None:
    ours = scores(ChebyCF(graph, ChebyCF.Config(rank=15, degree=1)))
    expected = eigen_chebycf(R, N, 8, 1.5, 15)
    # The polynomial and h agree at 0 only nearly, which scales the row itself: compare the others.
    unseen = R == 0
    assert_close(ours[unseen], expected[unseen], atol=2e-2, rtol=0)


@pytest.mark.parametrize("model", [GFCF, BSPM, ChebyCF])
def test_a_new_user_with_a_known_history_gets_that_users_scores(
    graph: BipartiteGraph, model: type[GFCF], R: Tensor
) -> None:
    built = model(graph, model.Config(rank=5))
    known = scores(built)
    one = torch.from_numpy(built.scorer().from_history(csr_array(R[3:4].float().numpy())))
    assert_close(one[0].double(), known[3], atol=1e-5, rtol=1e-5)


def test_an_unknown_solver_of_bspm_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown solver 'rk5'"):
        BSPM.Config(solver="rk5")


@pytest.mark.parametrize("rank", [4, 15])
def test_svdae_is_the_least_squares_of_low_rank(
    graph: BipartiteGraph, R: Tensor, N: Tensor, rank: int
) -> None:
    U, values, V = torch.linalg.svd(N, full_matrices=False)
    kept = [place for place in range(rank) if values[place] > 1e-6]
    inverse = V[kept].T / values[kept] @ U[:, kept].T
    expected = R.sum(1).sqrt()[:, None] * (N @ inverse @ R)  # the root changes no list
    assert_close(scores(SVDAE(graph, SVDAE.Config(rank=rank))), expected, atol=1e-4, rtol=0)
