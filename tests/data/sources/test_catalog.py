import os
from pathlib import Path

import pytest

from ltocf.data.sources.catalog import load_dataset
from ltocf.data.sources.published import PUBLISHED
from ltocf.errors import DataError


def test_a_folder_of_lightgcn_text_is_a_data_set(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.txt").write_text("0 0 1\n1 1 2\n2\n")
    (folder / "test.txt").write_text("0 2\n1\n")
    data = load_dataset(folder)
    assert data.name == "mine"
    assert data.counts == {"users": 3, "items": 3, "train": 4, "valid": 0, "test": 1, "unliked": 0}


def test_test_items_that_train_does_not_know_are_dropped_unless_told_otherwise(tmp_path):
    (tmp_path / "train.txt").write_text("0 0 1\n1 2\n")
    (tmp_path / "test.txt").write_text("0 7 2\n")
    data = load_dataset(tmp_path)
    assert (data.counts["items"], data.counts["test"], data.split.dropped) == (3, 1, 1)
    assert load_dataset(tmp_path, unknown="keep").counts["items"] == 4
    with pytest.raises(DataError, match=r"test item 7 is not in train .* with unknown='drop'"):
        load_dataset(tmp_path, unknown="error")


def test_lines_have_an_order_only_if_that_is_said(tmp_path):
    (tmp_path / "train.txt").write_text("0 3 1 2\n")
    (tmp_path / "test.txt").write_text("0 2 1\n1 3\n")
    with pytest.raises(DataError, match="the test set has no new interaction"):
        load_dataset(tmp_path)
    (tmp_path / "train.txt").write_text("0 3 1 2\n1 2 1\n")
    assert load_dataset(tmp_path).split.train.timestamps is None
    train = load_dataset(tmp_path, ordered=True).split.train
    assert train.later_counts.tolist() == [1, 0, 2, 0, 1], "of 1, 2 and 3, then of 1 and 2"


def test_a_prepared_directory_is_loaded_by_its_path(tmp_path):
    load_dataset("town").save(tmp_path / "copy")
    assert load_dataset(str(tmp_path / "copy")).counts == load_dataset("town").counts


def test_a_path_that_is_not_there_is_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("no/such/folder", "nope.csv"):
        with pytest.raises(DataError, match=f"{path}: no such file or folder"):
            load_dataset(path)


@pytest.mark.parametrize("name", ["gowala", "", "."])
def test_an_unknown_name_lists_the_choices(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"choose one of: town, gowalla, yelp2018, amazon-book"):
        load_dataset(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gowalla", "yelp2018"])
def test_the_published_sets_have_the_published_counts(name):
    if not (Path(os.environ.get("LTOCF_DATA", "")) / name / "train.txt").is_file():
        pytest.skip("no published data in LTOCF_DATA")
    counts = load_dataset(name).counts
    facts = PUBLISHED[name]
    assert counts == {
        "users": facts.users,
        "items": facts.items,
        "train": facts.train,
        "valid": 0,
        "test": facts.test,
        "unliked": 0,
    }
