"""From a log to a data set directory."""

import errno
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.data.ingest.read_log import read_log
from ltocf.data.interactions import Interactions
from ltocf.data.pairs import store as pair_store
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.sources.town import make_town
from ltocf.data.splits import (
    Split,
    hold_out_validation,
    no_split,
    split_pairs,
)
from ltocf.errors import ConfigError, DataError, LtocfError


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    return make_town(120, 90, seed=3).log()


def in_memory(log: pl.DataFrame, recipe: Recipe) -> Split:
    interactions = read_log(log).interactions
    splits = {
        "ratio": lambda: split_pairs(interactions, ratio=recipe.ratio, seed=recipe.seed),
        "temporal": lambda: split_pairs(interactions, "temporal", recipe.ratio),
        "leave-last-out": lambda: split_pairs(interactions, "leave-last-out"),
        "cold-items": lambda: split_pairs(interactions, "cold-items", seed=recipe.seed),
        "none": lambda: no_split(interactions),
    }
    split = splits[recipe.split]()
    return (
        hold_out_validation(split, recipe.validation, seed=recipe.seed)
        if recipe.validation
        else split
    )


def same(left: Interactions, right: Interactions) -> bool:
    return (
        left.fingerprint == right.fingerprint
        and left.user_ids == right.user_ids
        and left.item_ids == right.item_ids
        and (not len(left) or np.array_equal(left.timestamps, right.timestamps))
    )


@pytest.mark.parametrize("bucket_rows", [10**9, 97])
@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(split="ratio", ratio=0.7, seed=5),
        Recipe(split="ratio", validation=0.2, seed=6),
        Recipe(split="temporal", ratio=0.6),
        Recipe(split="temporal", ratio=0.9, validation=0.3),
        Recipe(split="leave-last-out"),
        Recipe(split="cold-items", seed=2),
        Recipe(split="none"),
    ],
    ids=lambda recipe: f"{recipe.split}-{recipe.validation}",
)
def test_on_disk_and_in_memory_give_the_same_split(log, recipe, bucket_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(pair_store, "BUCKET_ROWS", bucket_rows)
    report = prepare(log, tmp_path / "out", recipe)
    ours, theirs = Dataset.load(tmp_path / "out"), in_memory(log, recipe)
    for part in ("train", "valid", "test"):
        assert same(getattr(ours.split, part), getattr(theirs, part)), part
    assert report.counts == ours.counts
    assert ours.split_kind == theirs.kind == recipe.split
    assert report.unknown_to_train == theirs.dropped


@pytest.mark.parametrize("bucket_rows", [10**9, 3])
def test_thinning_repeats_until_everybody_has_enough(tmp_path, monkeypatch, bucket_rows):
    # d leaves with z, then c has one left and leaves with y: only a and b with w and x remain.
    pairs = [("a", "w"), ("a", "x"), ("b", "w"), ("b", "x"), ("c", "x"), ("c", "y"), ("d", "y")]
    monkeypatch.setattr(pair_store, "BUCKET_ROWS", bucket_rows)
    frame = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    report = prepare(frame, tmp_path / "out", Recipe(min_user=2, min_item=2, split="none"))
    train = Dataset.load(tmp_path / "out").split.train
    assert train.user_ids.ids.to_list() == ["a", "b"]
    assert train.item_ids.ids.to_list() == ["w", "x"]
    assert report.too_few == 3
    assert report.density == 1


def test_repeats_are_merged_at_their_first_time_even_when_far_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("ltocf.data.ingest.log.BATCH_ROWS", 2)
    monkeypatch.setattr("ltocf.data.ingest.prepare.CHUNK_ROWS", 2)
    rows = [("a", "x", 9), ("b", "x", 5), ("a", "y", 7), ("b", "y", 6), ("a", "x", 3)]
    frame = pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")
    report = prepare(frame, tmp_path / "out", Recipe(split="none"))
    train = Dataset.load(tmp_path / "out").split.train
    assert train.timestamps is not None
    assert train.timestamps.tolist() == [3, 7, 5, 6]
    assert report.duplicates == 1


def test_the_report_adds_up_and_reads_well(tmp_path):
    rows = "a,x,5\na,x,4\na,y,5\nb,x,4\nb,y,1\nb,y,5\nc,z,5\n"
    (tmp_path / "log.csv").write_text("user_id,film,stars\n" + rows)
    recipe = Recipe(item="film", threshold=3, min_user=2, split="none")
    report = prepare(tmp_path / "log.csv", tmp_path / "out", recipe)
    kept = report.counts["train"]
    assert report.rows == 7 == report.below_threshold + report.duplicates + report.too_few + kept
    text = "\n".join(report.lines())
    assert "user = 'user_id' (guessed), item = 'film', rating = 'stars' (guessed)" in text
    assert "not liked: 1 rows with a rating below the threshold or none; 0 pairs are kept" in text
    assert "split: none, all 4 train and nothing is left to test" in text
    assert "kept: 2 users x 2 items, density 100.0000%" in text
    assert "does not know" not in text
    about = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert about["origin"]["below_threshold"] == 1
    assert about["origin"]["options"]["min_user"] == 2
    assert json.loads(json.dumps(report.to_dict()))["density"] == 1


def test_names_are_kept_for_display_in_the_order_of_the_items(tmp_path, log):
    town = make_town(120, 90, seed=3).dataset
    assert town.item_names is not None
    table = town.item_names.with_columns(place=town.split.train.item_ids.ids)[::-1][5:]
    table.write_csv(tmp_path / "places.csv")
    report = prepare(log, tmp_path / "out", names=tmp_path / "places.csv")
    data = Dataset.load(tmp_path / "out")
    assert report.unnamed_items == 5
    assert "without a name: 5 items" in report.lines()
    assert data.item_names is not None
    assert data.item_names.columns == ["name", "kind", "neighbourhood"]
    named = dict(zip(data.split.train.item_ids.ids, data.item_names["name"], strict=True))
    expected = dict(zip(table["place"], table["name"], strict=True))
    assert {place: name for place, name in named.items() if name is not None} == expected


def test_a_table_of_names_may_repeat_ids_and_use_integers(tmp_path):
    frame = pl.DataFrame({"user": ["a", "b"], "item": [10, 9]})
    pl.DataFrame({"id": [9, 9, 10, 4], "title": ["nine", "again", "ten", "four"]}).write_parquet(
        tmp_path / "films.parquet"
    )
    prepare(frame, tmp_path / "out", Recipe(split="none"), names=tmp_path / "films.parquet")
    names = Dataset.load(tmp_path / "out").item_names
    assert names is not None
    assert names["title"].to_list() == ["nine", "ten", "four"]


def test_a_table_without_item_ids_is_an_error(tmp_path, log):
    (tmp_path / "names.csv").write_text("code,label\n1,x\n")
    with pytest.raises(DataError, match=r"names\.csv: no column 'place' with item ids"):
        prepare(log, tmp_path / "out", names=tmp_path / "names.csv")
    assert not (tmp_path / "out").exists()


def test_progress_reports_stages_and_rows(tmp_path, log):
    told: list[tuple[str, int, int | None]] = []
    prepare(log, tmp_path / "out", progress=lambda *news: told.append(news))
    assert ("reading", log.height, log.height) in told
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["reading", "sorting", "merging repeats", "counting", "splitting", "writing"]


def test_a_prepared_log_is_a_data_set_by_its_path(tmp_path, log):
    prepare(log, tmp_path / "mine")
    assert load_dataset(tmp_path / "mine").name == "mine"
    assert sorted(file.name for file in (tmp_path / "mine").iterdir()) == [
        "dataset.json",
        "digests.json",
        "items.parquet",
        "test.parquet",
        "train.parquet",
        "users.parquet",
    ]


def one_user(n: int) -> pl.DataFrame:
    return pl.DataFrame({"user": ["a"] * n, "item": list(range(n)), "time": list(range(n))})


def one_item(n: int) -> pl.DataFrame:
    return pl.DataFrame({"user": list(range(n)), "item": ["x"] * n, "time": list(range(n))})


@pytest.mark.parametrize("split", ["ratio", "temporal", "leave-last-out"])
@pytest.mark.parametrize("frame", [one_user(10), one_item(10), one_user(1)])
def test_one_user_or_one_item_leaves_nothing_to_test(frame, split, tmp_path):
    with pytest.raises(DataError, match="the split leaves no interaction for test"):
        prepare(frame, tmp_path / "out", Recipe(split=split))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("frame", [one_user(10), one_item(10), one_user(1)])
def test_one_user_or_one_item_can_still_train(frame, tmp_path):
    prepare(frame, tmp_path / "out", Recipe(split="none"))
    assert len(Dataset.load(tmp_path / "out").split.train) == frame.height


def test_a_user_who_has_everything_is_split_like_anyone(tmp_path):
    everything = [("all", item) for item in range(20)]
    some = [(user, item) for user in "abcdef" for item in range(0, 20, 2)]
    frame = pl.DataFrame([*everything, *some], schema=["user", "item"], orient="row")
    prepare(frame, tmp_path / "out", Recipe(ratio=0.5))
    split = Dataset.load(tmp_path / "out").split
    row = split.train.user_ids.find(["all"])[0]
    both = {*split.train.items_of(row).tolist(), *split.test.items_of(row).tolist()}
    assert both == set(range(20))


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe(split="thirds"), "split = 'thirds' is unknown; choose one of: ratio, temp"),
        (Recipe(ratio=1.5), "ratio must lie between 0 and 1, got 1.5"),
        (Recipe(validation=-1), "validation must lie between 0 and 1, got -1"),
        (Recipe(seed=-1), "seed = -1: must be a whole number from 0 to 2\\^63 - 1"),
        (Recipe(min_user=0), "min_user must be at least 1, got 0"),
        (Recipe(min_item=10**6), "nothing is left: no users with 1 and items with 1000000"),
        (Recipe(threshold=3), "cannot guess the rating column"),
    ],
)
def test_wrong_options_are_one_clear_line_and_write_nothing(log, recipe, message, tmp_path):
    with pytest.raises(LtocfError, match=message) as error:
        prepare(log, tmp_path / "out", recipe)
    assert isinstance(error.value, DataError | ConfigError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("split", ["temporal", "leave-last-out"])
def test_a_split_by_time_needs_a_time_column(log, split, tmp_path):
    with pytest.raises(DataError, match=f"the {split} split needs the time of each interaction"):
        prepare(log.drop("time"), tmp_path / "out", Recipe(split=split))


def test_a_bad_row_late_in_the_log_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("ltocf.data.ingest.log.BATCH_ROWS", 100)
    rows = "".join(f"u{n},i{n}\n" for n in range(5000))
    (tmp_path / "log.csv").write_text(f"user,item\n{rows},i7\n")
    with pytest.raises(DataError, match="row 5,001: no user id"):
        prepare(tmp_path / "log.csv", tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


def test_an_output_that_exists_is_refused_before_anything_is_read(log, tmp_path):
    prepare(log, tmp_path / "out", Recipe(seed=1))
    before = (tmp_path / "out" / "dataset.json").read_bytes()
    with pytest.raises(DataError, match=r"out: already exists; .*--overwrite"):
        prepare(log, tmp_path / "out", Recipe(seed=2))
    assert (tmp_path / "out" / "dataset.json").read_bytes() == before
    prepare(log, tmp_path / "out", Recipe(seed=2), overwrite=True)
    assert (tmp_path / "out" / "dataset.json").read_bytes() != before


def test_an_unwritable_output_is_one_clear_error(log, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        prepare(log, tmp_path / "file" / "out")


@pytest.mark.parametrize(
    "broken",
    [
        "ltocf.data.pairs.columns.ColumnFiles.append",
        "ltocf.data.pairs.columns.ColumnFiles.replace",
        "polars.DataFrame.write_parquet",
        "polars.LazyFrame.sink_parquet",
        "pathlib.Path.write_text",
    ],
)
def test_a_full_disk_at_any_stage_leaves_nothing_behind(log, tmp_path, monkeypatch, broken):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(broken, full)
    with pytest.raises(DataError, match=r"out: cannot be written \(No space left on device\)"):
        prepare(log, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing_behind(log, tmp_path):
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if stage == "splitting":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(log, tmp_path / "out", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_the_cut_in_time_is_exact_for_any_times(tmp_path, monkeypatch):
    monkeypatch.setattr(pair_store, "BUCKET_ROWS", 50)
    random = np.random.default_rng(0)
    for scale in (3, 1000, 2**40, 2**62):
        times = random.integers(-scale, scale, size=400)
        frame = pl.DataFrame(
            {"user": np.arange(400) // 10, "item": np.arange(400) % 40, "time": times}
        )
        prepare(frame, Path(tmp_path / str(scale)), Recipe(split="temporal", ratio=0.63))
        ours = Dataset.load(tmp_path / str(scale)).split
        assert same(ours.test, split_pairs(read_log(frame).interactions, "temporal", 0.63).test)
