"""Weights, ratings below the threshold, and logs of test pairs: what a data set keeps of them."""

import numpy as np
import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.data.ingest.read_log import read_log
from ltocf.data.interactions import Interactions
from ltocf.data.pairs import store as pair_store
from ltocf.data.splits import all_in_train
from ltocf.errors import ConfigError, DataError
from ltocf.recommend.recommender import Recommender

PLAYS = pl.DataFrame(
    {
        "user": ["ann", "ann", "ann", "ben", "ben", "cem"],
        "song": ["tea", "tea", "jazz", "tea", "jazz", "tea"],
        "time": [1, 2, 3, 4, 5, 6],
        "plays": [3, 4, 1, 7, 2, 5],
    }
)


def pairs_of(pairs: Interactions | None) -> set[tuple[object, object]]:
    assert pairs is not None
    return set(zip(pairs.user_ids[pairs.users], pairs.item_ids[pairs.items], strict=True))


def weights_of(pairs: Interactions) -> dict[tuple[object, object], float]:
    assert pairs.weights is not None
    assert pairs.weights.dtype == np.float32
    ids = zip(pairs.user_ids[pairs.users], pairs.item_ids[pairs.items], strict=True)
    return dict(zip(ids, pairs.weights.tolist(), strict=True))


@pytest.mark.parametrize("bucket_rows", [10**9, 2])
@pytest.mark.parametrize(
    ("options", "ann_tea", "ben_tea"),
    [
        ({"weight": "plays"}, 7, 7),
        ({"weight": "plays", "repeats": "sum"}, 7, 7),
        ({"weight": "plays", "repeats": "max"}, 4, 7),
        ({"repeats": "sum"}, 2, 1),
    ],
)
def test_weights_are_kept_and_repeats_are_joined(
    tmp_path, monkeypatch, options, ann_tea, ben_tea, bucket_rows
):
    monkeypatch.setattr(pair_store, "BUCKET_ROWS", bucket_rows)
    prepare(PLAYS, tmp_path / "out", Recipe(item="song", split="none", **options))
    stored = weights_of(Dataset.load(tmp_path / "out").split.train)
    assert (stored["ann", "tea"], stored["ben", "tea"]) == (ann_tea, ben_tea)
    assert weights_of(read_log(PLAYS, item="song", **options).interactions) == stored


def test_without_being_asked_for_there_are_no_weights(tmp_path):
    report = prepare(PLAYS, tmp_path / "out", Recipe(split="none"))
    assert Dataset.load(tmp_path / "out").split.train.weights is None
    said = "column 'plays' is not used; weight= (--weight plays) uses it as strength"
    assert said in report.notes


def test_weights_go_with_their_pairs_through_split_save_and_deployment(tmp_path):
    many = pl.DataFrame(
        [(f"u{n}", f"i{n * m % 11}", 1 + n * m % 7) for n in range(40) for m in range(9)],
        schema=["user", "item", "plays"],
        orient="row",
    )
    prepare(many, tmp_path / "out", Recipe(weight="plays", ratio=0.6, validation=0.3, seed=1))
    split = Dataset.load(tmp_path / "out").split
    everything = weights_of(read_log(many, weight="plays").interactions)
    parts = [weights_of(part) for part in (split.train, split.valid, split.test)]
    assert all(part.items() <= everything.items() for part in parts)
    assert weights_of(all_in_train(split).train) == everything


@pytest.mark.parametrize("bad", ["0", "1e-9", "1e30", "", "many", "inf", "NaN"])
def test_a_weight_must_be_a_number_above_zero(tmp_path, bad):
    (tmp_path / "log.csv").write_text(f"user,item,plays\na,x,2\nb,x,{bad}\n")
    with pytest.raises(DataError, match=r"row 2: .* in column 'plays'"):
        read_log(tmp_path / "log.csv", weight="plays")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": "max"}, "repeats 'max' needs a column of weights"),
        ({"repeats": "first"}, "unknown repeats 'first'; choose one of: sum, max"),
    ],
)
def test_repeats_without_meaning_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        read_log(PLAYS, **options)


STARS = pl.DataFrame(
    {
        "user": ["a", "a", "a", "b", "b", "c", "c", "d"],
        "item": ["x", "y", "z", "x", "y", "x", "z", "x"],
        "rating": [5, 2, 1, 4, 5, 1, 5, 1],
    }
)


@pytest.mark.parametrize("bucket_rows", [10**9, 2])
def test_ratings_below_the_threshold_are_seen_and_never_learned(tmp_path, monkeypatch, bucket_rows):
    monkeypatch.setattr(pair_store, "BUCKET_ROWS", bucket_rows)
    report = prepare(STARS, tmp_path / "out", Recipe(threshold=4, split="none"))
    data = Dataset.load(tmp_path / "out")
    assert pairs_of(data.split.train) == {("a", "x"), ("b", "x"), ("b", "y"), ("c", "z")}
    assert pairs_of(data.split.unliked) == {("a", "y"), ("a", "z"), ("c", "x")}, "d likes nothing"
    assert report.counts["unliked"] == 3
    assert report.below_threshold == 4
    assert data.counts == report.counts


@pytest.mark.parametrize("fitted_on", ["data set", "frame"])
def test_what_somebody_did_not_like_is_not_recommended(tmp_path, fitted_on):
    if fitted_on == "data set":
        prepare(STARS, tmp_path / "out", Recipe(threshold=4, split="none"))
        recommender = Recommender("popularity").fit(tmp_path / "out")
    else:
        recommender = Recommender("popularity").fit(STARS, threshold=4)
    assert recommender.recommend("c", 3)["item"].to_list() == ["y"]
    assert recommender.recommend("a", 3).height == 0
    assert recommender.recommend("a", 3, keep_seen=True).height == 3
    recommender.save(tmp_path / "run")
    again = Recommender.load(tmp_path / "run")
    assert again.recommend("c", 3)["item"].to_list() == ["y"]


def test_a_pair_that_was_liked_once_is_liked(tmp_path):
    frame = pl.DataFrame({"user": ["a", "a"], "item": ["x", "x"], "rating": [1, 5], "t": [1, 2]})
    contents = read_log(frame, threshold=4, time="t")
    assert contents.unliked is None
    assert contents.interactions.timestamps.tolist() == [2], "the time of the like"


TEST = pl.DataFrame({"user": ["a", "b", "e", "a"], "item": ["y", "z", "x", "x"], "rating": [5] * 4})


@pytest.mark.parametrize("bucket_rows", [10**9, 2])
def test_a_log_of_test_pairs_is_the_test_set(tmp_path, monkeypatch, bucket_rows):
    monkeypatch.setattr(pair_store, "BUCKET_ROWS", bucket_rows)
    report = prepare(STARS, tmp_path / "out", Recipe(), test=TEST)
    data = Dataset.load(tmp_path / "out")
    assert data.split_kind == "given"
    assert pairs_of(data.split.train) == pairs_of(read_log(STARS).interactions)
    assert pairs_of(data.split.test) == {("b", "z")}, "train has the others, or does not know e"
    assert report.unknown_to_train == 1
    prepare(STARS, tmp_path / "keep", Recipe(unknown="keep"), test=TEST)
    assert pairs_of(Dataset.load(tmp_path / "keep").split.test) == {("b", "z"), ("e", "x")}
    with pytest.raises(DataError, match=r"1 test interactions have a user or item .*--unknown"):
        prepare(STARS, tmp_path / "error", Recipe(unknown="error"), test=TEST)


def test_a_test_log_must_have_the_same_columns_and_some_pairs(tmp_path, ltocf):
    STARS.write_csv(tmp_path / "train.csv")
    TEST.rename({"item": "film"}).write_csv(tmp_path / "test.csv")
    arguments = "prepare", tmp_path / "train.csv", "--test", tmp_path / "test.csv", "-o"
    code, _, err = ltocf(*arguments, tmp_path / "out")
    assert code == 2
    assert "test.csv: no column 'item' for the item; the columns are: 'user', 'film'" in err
    with pytest.raises(DataError, match="the split leaves no interaction for test"):
        prepare(STARS, tmp_path / "out", Recipe(), test=STARS)
    with pytest.raises(ConfigError, match="needs a log of test pairs; pass test="):
        prepare(STARS, tmp_path / "out", Recipe(split="given"))
    assert not (tmp_path / "out").exists()


def test_a_folder_of_lightgcn_text_can_be_prepared_with_its_order(tmp_path, ltocf):
    (tmp_path / "train.txt").write_text("0 3 1 2\n1 2 1\n")
    (tmp_path / "test.txt").write_text("0 9\n1 3\n")
    code, out, err = ltocf("prepare", tmp_path, "-o", tmp_path / "plain")
    assert code == 0, err
    assert "the order of lines is without meaning" in out
    assert "left out: 1 test pairs" in out
    assert Dataset.load(tmp_path / "plain").split.train.timestamps is None
    code, _, err = ltocf(
        "prepare", tmp_path, "-o", tmp_path / "ordered", "--ordered", "--unknown", "keep"
    )
    assert code == 0, err
    data = Dataset.load(tmp_path / "ordered")
    assert data.split.train.later_counts.tolist() == [1, 0, 2, 0, 1]
    assert (data.counts["items"], data.split_kind) == (4, "given")
    code, _, err = ltocf("prepare", tmp_path, "-o", tmp_path / "x", "--min-user", 3)
    assert (code, "--min-user does not apply to them" in err) == (2, True)
    code, _, err = ltocf("prepare", tmp_path, "-o", tmp_path / "x", "--unknown", "maybe")
    assert (code, "unknown = 'maybe' is unknown" in err) == (2, True)


def test_training_on_such_a_folder_says_what_it_leaves_out(tmp_path, ltocf):
    (tmp_path / "train.txt").write_text("0 3 1 2\n1 2 1\n")
    (tmp_path / "test.txt").write_text("0 9\n1 3\n")
    code, _, err = ltocf("train", tmp_path, "--model", "popularity", "-o", tmp_path / "run")
    assert code == 0, err
    assert "left out: 1 test pairs that train has, or whose user or item it does not know" in err


def test_a_recommender_takes_weights_from_a_column():
    fitted = Recommender("ease").fit(PLAYS, item="song", weight="plays")
    assert weights_of(fitted.dataset.split.train)["ann", "tea"] == 7
