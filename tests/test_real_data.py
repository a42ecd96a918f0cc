"""Known answers on the published data; skipped where they are not."""

import os
from pathlib import Path

import pytest

from ltocf.data.sources.catalog import load_dataset
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.settings import make_config

HERE = Path(__file__).parent
FOLDERS = [Path(p) for p in (os.environ.get("LTOCF_DATA"), HERE / "../../shared/data") if p]
FOUND = next((folder for folder in FOLDERS if (folder / "gowalla" / "train.txt").is_file()), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="no published data in LTOCF_DATA or ../shared/data"),
]

LIGHTGCN_AS_PUBLISHED = [
    "model=lightgcn", "layers=3", "dim=64", "start=random", "batch_size=2048", "draw_by=users",
    "learning_rate=1e-3", "schedule=constant", "negatives=1", "sampling=uniform", "l2=1e-4",
    "epochs=5", "protocol=fixed",
]  # fmt: skip


def test_lightgcn_after_five_epochs_is_where_the_reference_implementation_is(tmp_path):
    """LightGCN-PyTorch prints Recall@20 0.1071 there."""
    assert FOUND is not None
    config = make_config({}, LIGHTGCN_AS_PUBLISHED)
    run = start_run(config, tmp_path / "run", dataset=load_dataset(str(FOUND / "gowalla")))
    assert 0.100 <= train_run(run)["recall@20"] <= 0.115


@pytest.mark.parametrize(
    ("name", "users", "items", "train", "test"),
    [
        ("gowalla", 29_858, 40_981, 810_128, 217_242),
        ("yelp2018", 31_668, 38_048, 1_237_259, 324_147),
    ],
)
def test_the_published_sets_have_their_published_sizes(name, users, items, train, test):
    assert FOUND is not None
    counts = load_dataset(str(FOUND / name)).counts
    expected = {"users": users, "items": items, "train": train, "valid": 0, "test": test}
    assert counts == expected
