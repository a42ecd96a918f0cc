"""The closed forms' configs, and the benchmark that reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.filters import CONFIGS, MODELS, PUBLISHED, describe, measure, settings

from ltocf.data.dataset import Dataset
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import check_settings
from ltocf.runs.settings import read_config

ROWS = [(data, model) for data in ("gowalla", "yelp2018") for model in MODELS]


@pytest.mark.parametrize(("data", "model"), ROWS)
def test_every_closed_form_has_a_config_that_it_takes(data: str, model: str) -> None:
    config = read_config(CONFIGS / f"{data}-{model}.toml")
    assert (config.dataset, config.model_name) == (data, model)
    assert config.train.protocol == "fixed"
    check_settings(config.model_name, config.model_options)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_config_is_one_that_its_model_takes(path: Path) -> None:
    config = read_config(path)
    assert path.stem.startswith(f"{config.dataset}-{config.model_name}")
    check_settings(config.model_name, config.model_options)


def test_defaults_are_gowallas_settings() -> None:
    for model in MODELS:
        options = settings("gowalla", model).model_options
        assert check_settings(model, options) == check_settings(model, {})


def test_a_row_of_the_benchmark_has_accuracy_seconds_and_memory(hamlet: Dataset) -> None:
    row = measure("gowalla", "itemknn", BipartiteGraph(hamlet.split.train), hamlet.split)
    assert 0 < row["recall@20"] <= 1 and row["fit_and_test_seconds"] >= row["fit_seconds"] >= 0
    assert describe(row).startswith("itemknn  recall@20 0.")
    assert ("gowalla", "itemknn") not in PUBLISHED and "ratio" not in row
