import numpy as np
import pytest
from benchmarks.distributed import compare
from benchmarks.scale import measure

SETTINGS = {
    "dim": 16,
    "epochs": 1,
    "steps": 0,
    "threads": None,
    "lists": 50,
    "train_only": False,
    "random_start": False,
    "prepare": True,
}


def test_every_stage_has_its_figures_and_what_was_found_is_beside_the_truth():
    row = measure(20_000, SETTINGS)
    for stage in ("city", "prepare", "graph", "epoch", "validation", "lists"):
        assert row[stage]["seconds"] >= 0 and row[stage]["peak_gigabytes"] > 0
    assert row["trained_on"] == pytest.approx(18_000, rel=0.1)
    assert 0 < row["recall@20"] < row["recall@20_of_the_truth"] < 1


def test_a_few_steps_are_said_to_be_extrapolated():
    row = measure(20_000, SETTINGS | {"steps": 2, "train_only": True, "prepare": False})
    assert row["epoch"]["extrapolated_from_steps"] == 2
    assert "validation" not in row


def test_lists_differ_by_their_sets_and_embeddings_by_their_largest_difference():
    assert compare("lists", np.array([[1, 2], [3, 4]]), np.array([[2, 1], [3, 5]])) == 0.5
    assert compare("embeddings", np.array([1.0, 2.0]), np.array([1.0, 2.5])) == 0.5
