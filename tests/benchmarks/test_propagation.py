"""The benchmark runs, agrees with torchdiffeq and reports every figure, on a graph of a moment."""

from __future__ import annotations

from benchmarks.data import synthetic_interactions
from benchmarks.propagation import (
    compare_products,
    compare_solvers,
    compare_with_torchdiffeq,
    measure_scaling,
)

from ltocf.graph.bipartite import BipartiteGraph


def test_both_sides_compute_the_same() -> None:
    graph = BipartiteGraph(synthetic_interactions(3000))
    report = compare_with_torchdiffeq(graph, dim=16, rounds=1)
    assert max(report["relative_difference"].values()) < 1e-4
    assert report["ratio"] > 0


def test_every_figure_is_reported() -> None:
    graph = BipartiteGraph(synthetic_interactions(2000))
    assert compare_products(graph, dim=16, rounds=1)["product_ratio"] > 0
    solvers = compare_solvers(graph, dim=16, rounds=1)
    assert solvers["degree"]["lightgcn_3_layers"] == 3 and solvers["degree"]["rk4"] == 11
    (row,) = measure_scaling([0.002], dim=16)
    assert row["table_fits_last_level_cache"] and row["ns_per_interaction"] > 0
