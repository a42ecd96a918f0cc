"""Known answers on the published data; skipped where they are not."""

import os
from pathlib import Path

import pytest

from ltocf.data.sources.catalog import load_dataset
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.settings import make_config

DATA = Path(os.environ.get("LTOCF_DATA", ""))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (DATA / "gowalla" / "train.txt").is_file(), reason="no published data in LTOCF_DATA"
    ),
]

LIGHTGCN_AS_PUBLISHED = [
    "model=lightgcn", "layers=3", "dim=64", "start=random", "batch_size=2048", "draw_by=users",
    "learning_rate=1e-3", "schedule=constant", "negatives=1", "sampling=uniform", "l2=1e-4",
    "epochs=5", "protocol=fixed",
]  # fmt: skip


def test_lightgcn_after_five_epochs_is_where_the_reference_implementation_is(tmp_path):
    """LightGCN-PyTorch prints Recall@20 0.1071 there."""
    config = make_config({}, LIGHTGCN_AS_PUBLISHED)
    run = start_run(config, tmp_path / "run", dataset=load_dataset(str(DATA / "gowalla")))
    assert 0.100 <= train_run(run)["recall@20"] <= 0.115
