"""Spectral propagation against torchdiffeq on the embeddings: output, dL/dE and dL/dt."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.ltocf import LTOCF
from tests.graph.test_bipartite import graphs, interactions

FIXED_STEP = ["euler", "midpoint", "rk4", "heun2", "heun3", "explicit_adams"]


def result(
    graph: BipartiteGraph, probe: Tensor, **setting: object
) -> tuple[Tensor, Tensor, Tensor]:
    """The output, and the gradients of <output, probe> by E and by the times."""
    learned = {"times": (0.75, 2.0, 2.5), "learn_times": "training"}
    config = LTOCF.Config(dim=probe.shape[1], tolerance=1e-13, **learned, **setting)
    model = LTOCF(graph, config).double()
    model.initialise_(seed=4)
    output = model.embeddings()
    (output * probe).sum().backward()
    assert model.weight.grad is not None and model.times.inner.grad is not None
    return output.detach(), model.weight.grad, model.times.inner.grad  # type: ignore[return-value]


@settings(deadline=None, max_examples=40)
@given(
    graphs(),
    st.sampled_from(FIXED_STEP),
    st.sampled_from(["linear", "residual"]),
    st.sampled_from(
        [
            {"steps_per_interval": 1},
            {"steps_per_interval": 3},
            {"step_size": 0.3},
            # Short enough steps for every one of the solvers to be stable.
            {"operator": "laplacian", "steps_per_interval": 12},
            {"operator": "laplacian", "step_size": 0.12},
        ]
    ),
)
def test_fixed_step_solvers_agree_to_rounding(
    graph: BipartiteGraph, solver: str, connection: str, steps: dict[str, object]
) -> None:
    probe = torch.randn(graph.n_nodes, 2, dtype=torch.float64)
    setting = {"solver": solver, "connection": connection, **steps}
    ours = result(graph, probe, **setting)
    theirs = result(graph, probe, **setting, propagation="reference")
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, rtol=1e-10, atol=1e-10)


@settings(deadline=None, max_examples=10)
@given(graphs(), st.sampled_from(["linear", "residual"]))
def test_dormand_prince_agrees_to_its_tolerance(graph: BipartiteGraph, connection: str) -> None:
    probe = torch.randn(graph.n_nodes, 2, dtype=torch.float64)
    setting = {"solver": "dormand_prince", "connection": connection, "rtol": 1e-8, "atol": 1e-10}
    ours = result(graph, probe, **setting)
    theirs = result(graph, probe, **setting, propagation="reference")
    # Each chooses its own steps: their errors, of about rtol, are multiplied by `scale`.
    assert_close(ours[0], theirs[0], rtol=1e-5, atol=1e-6)
    assert_close(ours[1], theirs[1], rtol=1e-5, atol=1e-6)
    # torchdiffeq differentiates the interpolant between its steps, which is an order less accurate.
    assert_close(ours[2], theirs[2], rtol=1e-3, atol=1e-4)


def test_the_adjoint_method_agrees_up_to_its_drift() -> None:
    graph = BipartiteGraph(interactions([(0, 0), (0, 1), (1, 1), (2, 0), (2, 2)], 3, 3))
    probe = torch.randn(6, 2, dtype=torch.float64)
    ours = result(graph, probe, solver="rk4", steps_per_interval=16)
    theirs = result(graph, probe, solver="rk4", steps_per_interval=16, propagation="adjoint")
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_learnable_weights_get_the_gradient_of_the_reference() -> None:
    graph = BipartiteGraph(interactions([(0, 0), (0, 1), (1, 1)], 2, 2))
    gradients = []
    for propagation in ("spectral", "reference"):
        config = LTOCF.Config(dim=3, weights="learnable", propagation=propagation, tolerance=1e-13)
        model = LTOCF(graph, config).double()
        model.initialise_(seed=0)
        model.embeddings().square().sum().backward()
        gradients.append(model.state_weights.grad)
    assert_close(*gradients, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("solver", ["exact", "adams_moulton"])
def test_solvers_that_torchdiffeq_lacks_have_no_reference(solver: str) -> None:
    with pytest.raises(ConfigError, match="torchdiffeq does not have this solver"):
        LTOCF.Config(solver=solver, propagation="reference")
