from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.lightgcn import LightGCN
from ltocf.models.ltocf import LTOCF
from ltocf.models.mf import MF
from ltocf.pictures.responses import draw_change, draw_responses, solver_responses

X = torch.linspace(-1, 1, 11, dtype=torch.float64)


@pytest.fixture
def graph() -> BipartiteGraph:
    return BipartiteGraph(Interactions.build(np.array([0, 1, 1]), np.array([0, 0, 1]), 2, 2))


def test_euler_and_lightgcn_draw_the_same_curve() -> None:
    responses = solver_responses("linear")
    assert_close(responses["euler"](X), responses["LightGCN, 4 layers"](X))
    assert (responses["rk4"](X) - responses["euler"](X)).abs().max() > 0.5


def test_the_response_of_lightgcn_is_the_mean_of_powers(graph: BipartiteGraph) -> None:
    (response,) = LightGCN(graph, LightGCN.Config(layers=2)).responses().values()
    assert_close(response(X), (1 + X + X**2) / 3)


def test_a_trained_model_shows_its_times_before_and_after(graph: BipartiteGraph) -> None:
    plain = {"scale": "natural", "connection": "residual", "tolerance": 1e-12}
    model = LTOCF(graph, LTOCF.Config(solver="exact", time_points=1, **plain))
    model.times.move_to_(torch.tensor([0, 1.5, 4]))
    before, after = model.responses().values()
    assert_close(before(X), (1 + torch.exp(2 * X) + torch.exp(4 * X)) / 3)
    assert_close(after(X), (1 + torch.exp(1.5 * X) + torch.exp(4 * X)) / 3)


def test_a_model_without_a_filter_is_refused(graph: BipartiteGraph) -> None:
    with pytest.raises(
        ConfigError, match="MF has no response to draw, since it is not a polynomial"
    ):
        MF(graph, MF.Config(dim=2)).responses()


def test_pictures_are_written_in_the_format_of_their_names(tmp_path, graph) -> None:
    draw_responses(tmp_path / "solvers.svg", solver_responses("residual"), relative=True)
    assert "<svg" in (tmp_path / "solvers.svg").read_text()
    draw_change(tmp_path / "times.png", LTOCF(graph, LTOCF.Config(dim=2)).responses())
    assert (tmp_path / "times.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"give one of: .pdf, .png, .svg"):
        draw_responses(tmp_path / "solvers.xyz", solver_responses("linear"))


def test_the_command_draws_solvers(tmp_path, ltocf) -> None:
    code, _, note = ltocf("response", "-o", tmp_path / "h.png")
    assert code == 0 and "h.png" in note
    assert (tmp_path / "h.png").exists()
