import errno
import json
from pathlib import Path

import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.sources.town import make_town
from ltocf.data.splits import hold_out_validation
from ltocf.errors import DataError


@pytest.fixture(scope="module")
def town() -> Dataset:
    data = make_town(60, 40).dataset
    split = hold_out_validation(data.split, 0.2, seed=0)
    return Dataset(data.name, split, data.item_names, data.origin)


@pytest.fixture
def unchecked(saved: Path) -> Path:
    """A data set without its digests: what is then still noticed."""
    (saved / "digests.json").unlink()
    return saved


@pytest.fixture
def saved(town: Dataset, tmp_path: Path) -> Path:
    town.save(tmp_path / "town")
    return tmp_path / "town"


def test_a_data_set_survives_save_and_load(town, saved):
    again = Dataset.load(saved)
    for part in ("train", "valid", "test"):
        ours, theirs = getattr(town.split, part), getattr(again.split, part)
        assert ours.fingerprint == theirs.fingerprint
        assert ours.timestamps.tolist() == theirs.timestamps.tolist()
    assert again.split.train.user_ids == town.split.train.user_ids
    assert again.split.test.item_ids is again.split.train.item_ids
    assert again.item_names.equals(town.item_names)
    assert (again.name, again.origin, again.counts) == (town.name, town.origin, town.counts)


def test_the_directory_is_plain_parquet_and_json(saved):
    assert sorted(file.name for file in saved.iterdir()) == [
        "dataset.json",
        "digests.json",
        "items.parquet",
        "test.parquet",
        "train.parquet",
        "users.parquet",
        "valid.parquet",
    ]
    assert pl.read_parquet_schema(saved / "train.parquet") == {
        "user": pl.Int32,
        "item": pl.Int32,
        "time": pl.Int64,
    }
    assert pl.read_parquet(saved / "items.parquet").columns == [
        "id",
        "name",
        "kind",
        "neighbourhood",
    ]


def test_a_data_set_without_validation_names_or_times_has_no_files_for_them(tmp_path, town):
    from ltocf.data.interactions import Interactions
    from ltocf.data.splits import split_pairs

    train = town.split.train
    timeless = Interactions(train.users, train.items, train.user_ids, train.item_ids)
    Dataset("bare", split_pairs(timeless, seed=0)).save(tmp_path / "bare")
    again = Dataset.load(tmp_path / "bare")
    assert again.item_names is None
    assert again.split.train.timestamps is None
    assert len(again.split.valid) == 0
    assert not (tmp_path / "bare" / "valid.parquet").exists()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def swap_columns(path: Path) -> None:
    pl.read_parquet(path).rename({"user": "item", "item": "user"}).write_parquet(path)


def raise_rows(path: Path) -> None:
    pl.read_parquet(path).with_columns(pl.col("user") + 1000).write_parquet(path)


def edit_json(path: Path, **entries: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda d: truncate(d / "train.parquet"), "train.parquet cannot be read"),
        (lambda d: (d / "items.parquet").unlink(), "items.parquet cannot be read"),
        (lambda d: (d / "users.parquet").write_text("x"), "users.parquet cannot be read"),
        (lambda d: swap_columns(d / "train.parquet"), "train.parquet"),
        (lambda d: raise_rows(d / "test.parquet"), "test.parquet holds rows that no id"),
        (
            lambda d: (d / "test.parquet").write_bytes((d / "valid.parquet").read_bytes()),
            "test.parquet is not the one that dataset.json describes",
        ),
        (lambda d: edit_json(d / "dataset.json", fingerprint="0"), "its fingerprint"),
        (lambda d: edit_json(d / "dataset.json", counts={}), "lacks entries"),
        (lambda d: edit_json(d / "dataset.json", counts=7), "lacks entries"),
        (lambda d: edit_json(d / "dataset.json", version=99), "format 99, but this ltocf reads 1"),
        (lambda d: edit_json(d / "dataset.json", format="x"), "does not describe a data set"),
        (lambda d: (d / "dataset.json").write_text('{"a'), "not a prepared data set"),
        (lambda d: (d / "dataset.json").write_text("[]"), "does not describe a data set"),
        (lambda d: (d / "dataset.json").unlink(), "not a prepared data set"),
    ],
)
def test_a_damaged_or_foreign_directory_is_a_clear_error(unchecked, harm, message):
    harm(unchecked)
    with pytest.raises(DataError, match=message) as error:
        Dataset.load(unchecked)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", [f"{stem}.parquet" for stem in ("train", "valid", "test", "users", "items")]
)
def test_a_flipped_bit_is_noticed_and_its_file_named(saved, name):
    content = bytearray((saved / name).read_bytes())
    content[len(content) // 2] ^= 16
    (saved / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name} is not the file that digests.json lists"):
        Dataset.load(saved)


def test_a_wrong_digest_file_is_a_clear_error(saved):
    for content in (b"{", b"[]", b'{"train.parquet": 3}', b"[" * 100_000, b"\xff"):
        (saved / "digests.json").write_bytes(content)
        with pytest.raises(DataError, match=r"digests\.json cannot be read"):
            Dataset.load(saved)


def test_what_is_there_is_not_overwritten_unless_asked(town, saved):
    with pytest.raises(DataError, match=r"already exists; .*--overwrite"):
        town.save(saved)
    (saved / "leftover").touch()
    town.save(saved, overwrite=True)
    assert not (saved / "leftover").exists()
    assert [file.name for file in saved.parent.iterdir()] == ["town"]


def test_a_directory_that_is_not_ours_is_never_overwritten(town, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    message = r"already exists and was not written by ltocf \(it has no dataset\.json\)"
    with pytest.raises(DataError, match=message):
        town.save(tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "cat.jpg").exists()


def test_an_empty_directory_may_be_filled(town, tmp_path):
    (tmp_path / "new").mkdir()
    town.save(tmp_path / "new")
    assert Dataset.load(tmp_path / "new").counts == town.counts


def test_a_place_that_cannot_be_written_is_an_error(town, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        town.save(tmp_path / "file" / "town")


def test_a_full_disk_leaves_nothing_behind(town, saved, monkeypatch):
    before = (saved / "dataset.json").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    for target, options in (("other", {}), ("town", {"overwrite": True})):
        with pytest.raises(DataError, match=r"cannot be written \(No space left on device\)"):
            town.save(saved.parent / target, **options)
    assert [file.name for file in saved.parent.iterdir()] == ["town"]
    assert (saved / "dataset.json").read_bytes() == before


def test_the_kind_of_split_is_remembered(unchecked):
    path = unchecked / "dataset.json"
    written = json.loads(path.read_text())
    assert written["split"] == "ratio"
    path.write_text(json.dumps(written | {"split": "temporal"}))
    assert Dataset.load(unchecked).split_kind == "temporal"


def test_an_unknown_kind_of_split_is_damage(unchecked):
    path = unchecked / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"split": "by taste"}))
    with pytest.raises(DataError, match="unknown split 'by taste'"):
        Dataset.load(unchecked)
