"""Singular vectors against LAPACK, and their cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltocf.data.interactions import Interactions
from ltocf.graph import spectrum as spectral
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.spectrum import singular_vectors
from ltocf.progress import OutOfTime


@pytest.fixture(scope="module")
def graph() -> BipartiteGraph:
    rng = np.random.default_rng(0)
    community = rng.integers(0, 12, 6000)
    users = (community * 25 + rng.integers(0, 40, 6000)) % 300
    items = (community * 30 + rng.integers(0, 50, 6000)) % 350
    return BipartiteGraph(Interactions.build(users, items, user_ids=300, item_ids=350))


@pytest.fixture
def iterated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectral, "DENSE_SIDE", 0)


@pytest.mark.usefixtures("iterated")
def test_iteration_finds_what_lapack_finds(graph: BipartiteGraph, tmp_path: Path) -> None:
    ours = singular_vectors(graph, 20, tolerance=1e-6, cache=tmp_path)
    exact = spectral._dense(graph, 20)
    assert_close(ours.values, exact.values, atol=1e-5, rtol=0)
    # Vectors of near values may mix, the projection on their span may not.
    assert_close(ours.items @ ours.items.T, exact.items @ exact.items.T, atol=2e-3, rtol=0)


@pytest.mark.usefixtures("iterated")
def test_singular_vectors_of_users_and_items_belong_together(
    graph: BipartiteGraph, tmp_path: Path
) -> None:
    vectors = singular_vectors(graph, 20, tolerance=1e-6, cache=tmp_path)
    U = vectors.users(graph)
    assert_close(U.T @ U, torch.eye(20), atol=1e-3, rtol=0)
    back = (graph @ torch.cat([U, torch.zeros(350, 20)]))[300:]
    assert_close(back, vectors.items * vectors.values.float(), atol=1e-4, rtol=0)


@pytest.mark.usefixtures("iterated")
def test_a_cache_changes_nothing_and_a_damaged_entry_is_ignored(
    graph: BipartiteGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    afresh = singular_vectors(graph, 7, cache=tmp_path / "other")
    first = singular_vectors(graph, 20, cache=tmp_path)
    after = singular_vectors(graph, 7, cache=tmp_path)  # beside a cached set of larger rank
    assert torch.equal(after.items, afresh.items) and torch.equal(after.values, afresh.values)
    with monkeypatch.context() as patch:
        patch.setattr(spectral, "_filtered_subspace", None)  # nothing is computed again
        assert torch.equal(singular_vectors(graph, 20, cache=tmp_path).items, first.items)
        assert torch.equal(singular_vectors(graph, 7, cache=tmp_path).items, afresh.items)
    (cached,) = tmp_path.glob("*-20-*")
    cached.write_bytes(b"not a tensor")
    assert torch.equal(singular_vectors(graph, 20, cache=tmp_path).items, first.items)


@pytest.mark.usefixtures("iterated")
def test_the_computation_of_a_spectrum_can_be_stopped_through_its_progress(
    graph: BipartiteGraph, tmp_path: Path
) -> None:
    def at_once(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        raise OutOfTime

    with pytest.raises(OutOfTime):
        singular_vectors(graph, 20, cache=tmp_path, progress=at_once)


def test_a_small_graph_has_no_more_than_its_own_rank(graph: BipartiteGraph) -> None:
    assert len(singular_vectors(graph, 10_000).values) == 300
