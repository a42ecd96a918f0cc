"""Reading logs: every form they come in, and every way they can be wrong."""

import gzip
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ltocf.data.ingest.read_log import read_log
from ltocf.data.interactions import Interactions
from ltocf.errors import DataError

ROWS = pl.DataFrame(
    {
        "user": ["ada", "ben", "ada", "ada", "ben"],
        "item": ["x", "x", "y", "x", "z"],
        "time": [5, 6, 7, 2, 9],
        "rating": [4.0, 1.0, 5.0, 3.0, -2.0],
    }
)


def triples(pairs: Interactions) -> list[tuple[object, object, int]]:
    assert pairs.timestamps is not None
    return list(
        zip(
            pairs.user_ids[pairs.users],
            pairs.item_ids[pairs.items],
            pairs.timestamps.tolist(),
            strict=True,
        )
    )


def ids(pairs: Interactions) -> list[tuple[object, object]]:
    return list(zip(pairs.user_ids[pairs.users], pairs.item_ids[pairs.items], strict=True))


def write_csv(tmp_path: Path, text: str, name: str = "log.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def write_as(form: str, tmp_path: Path) -> object:
    path = tmp_path / f"log.{form}"
    if form in ("csv", "tsv", "csv.zst", "csv.gz"):
        separator = "\t" if form == "tsv" else ","
        compression = {"csv.zst": "zstd", "csv.gz": "gzip"}.get(form, "uncompressed")
        ROWS.lazy().sink_csv(path, separator=separator, compression=compression)
    elif form == "parquet":
        ROWS.write_parquet(path)
    elif form == "folder":
        path.mkdir()
        ROWS[:2].write_csv(path / "part-0.csv")
        ROWS[2:].select("time", "rating", "item", "user").write_csv(path / "part-1.csv")
        (path / "_SUCCESS").touch()
        (path / ".part-0.csv.crc").write_text("junk")
    elif form == "parquet folder":
        path.mkdir()
        ROWS[:2].write_parquet(path / "a.parquet")
        ROWS[2:].write_parquet(path / "b.parquet")
    elif form == "polars":
        return ROWS
    elif form == "lazy":
        return ROWS.lazy()
    else:
        return ROWS.to_pandas()
    return path


FORMS = [
    *("csv", "tsv", "csv.gz", "csv.zst", "parquet"),
    *("folder", "parquet folder", "polars", "lazy", "pandas"),
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_log_gives_the_same_pairs(form, tmp_path):
    contents = read_log(write_as(form, tmp_path))
    assert triples(contents.interactions) == [
        ("ada", "x", 2),
        ("ada", "y", 7),
        ("ben", "x", 6),
        ("ben", "z", 9),
    ]
    assert (contents.rows, contents.duplicates, contents.below_threshold) == (5, 1, 0)


def test_ratings_below_the_threshold_or_missing_are_left_out_and_counted(tmp_path):
    path = write_csv(tmp_path, "user,item,stars\na,x,4\na,y,-3\nb,x,\nb,y,3.5\nc,x,NaN\n")
    contents = read_log(path, threshold=3.5)
    assert ids(contents.interactions) == [("a", "x"), ("b", "y")]
    assert contents.below_threshold == 3
    assert contents.interactions.n_users == 2, "c has nothing left"


def test_columns_are_guessed_and_reported_or_given():
    frame = pl.DataFrame({"Customer-ID": ["a"], "x": [1], "SKU": ["s"], "createdAt": [3]})
    guess = read_log(frame).columns
    assert (guess.user, guess.item, guess.time) == ("Customer-ID", "SKU", "createdAt")
    assert guess.describe() == (
        "user = 'Customer-ID' (guessed), item = 'SKU' (guessed), time = 'createdAt' (guessed)"
    )
    given = read_log(frame, item="x").columns
    assert given.item == "x"
    assert "item = 'x'," in given.describe()


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_the_separator_is_found_in_the_header(tmp_path, separator):
    text = "user,item\na b,x\nc,y\n".replace(",", separator)
    assert ids(read_log(write_csv(tmp_path, text)).interactions) == [("a b", "x"), ("c", "y")]


STRANGE = [
    " lead and trail ",
    'say "hi"',
    "two\nlines",
    "🎷🦊",
    "comma, here",
    "tab\there",
    "007",
    "-0",
    "1e3",
    "naïve",
    "'",
]


@pytest.mark.parametrize("form", ["csv", "parquet", "frame"])
def test_strange_ids_are_kept_exactly(tmp_path, form):
    frame = pl.DataFrame({"user": STRANGE, "item": STRANGE[::-1]})
    source: object = frame
    if form != "frame":
        source = tmp_path / f"log.{form}"
        (frame.write_csv if form == "csv" else frame.write_parquet)(source)
    pairs = read_log(source).interactions
    assert sorted(ids(pairs)) == sorted(zip(STRANGE, STRANGE[::-1], strict=True))


def test_whole_numbers_in_text_are_integers_and_sorted_as_such(tmp_path):
    pairs = read_log(write_csv(tmp_path, "user,item\n10,1\n9,-3\n")).interactions
    assert ids(pairs) == [(9, -3), (10, 1)]


def test_one_id_that_is_not_written_as_a_number_makes_them_all_text(tmp_path):
    pairs = read_log(write_csv(tmp_path, "user,item\n7,1\n07,1\n")).interactions
    assert ids(pairs) == [("07", 1), ("7", 1)]


def test_text_that_looks_like_numbers_stays_text_where_the_file_has_types():
    pairs = read_log(pl.DataFrame({"user": ["7"], "item": [8]})).interactions
    assert ids(pairs) == [("7", 8)]


def test_uuids_are_kept_as_text_or_from_bytes():
    names = [uuid.UUID(int=n) for n in (7, 2**127)]
    as_text = pl.DataFrame({"user": [str(name) for name in names], "item": [1, 2]})
    as_bytes = pl.DataFrame({"user": [name.bytes for name in names], "item": [1, 2]})
    expected = [(str(names[0]), 1), (str(names[1]), 2)]
    assert ids(read_log(as_text).interactions) == expected
    assert ids(read_log(as_bytes).interactions) == expected


def test_unsigned_numbers_of_64_bits_are_kept_exactly():
    frame = pl.DataFrame({"user": pl.Series([2**64 - 1], dtype=pl.UInt64), "item": [1]})
    assert read_log(frame).interactions.user_ids.find([2**64 - 1]).tolist() == [0]


def test_categories_are_read_as_their_text():
    frame = ROWS.with_columns(
        pl.col("user").cast(pl.Categorical), pl.col("item").cast(pl.Categorical)
    )
    assert triples(read_log(frame).interactions) == triples(read_log(ROWS).interactions)


def test_an_id_of_ten_megabytes_is_an_id_like_any_other(tmp_path):
    long = "x" * 10_000_000
    path = write_csv(tmp_path, f"user,item\n{long},a\nb,a\n")
    assert read_log(path).interactions.user_ids.find([long]).tolist() == [1]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1700000000", "1600000000"], [1700000000000000, 1600000000000000]),
        (["1700000000.5", "1600000000"], [1700000000500000, 1600000000000000]),
        (["2024-01-02", "1969-12-31"], [1704153600000000, -86400000000]),
        (["2024-01-02 03:04:05", "2024-01-02 03:04:05.25"], [1704164645000000, 1704164645250000]),
        (
            ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05+01:00"],
            [1704164645000000, 1704161045000000],
        ),
        (["02.01.2024", "01.02.2024"], [1704153600000000, 1706745600000000]),
    ],
)
def test_times_are_read_in_the_usual_forms(tmp_path, written, expected):
    rows = "".join(f"u,{item},{when}\n" for item, when in enumerate(written))
    pairs = read_log(write_csv(tmp_path, "user,item,time\n" + rows)).interactions
    assert pairs.timestamps is not None
    assert pairs.timestamps.tolist() == expected


def test_times_of_data_frames_are_read_by_their_type():
    moments = pl.Series(["2024-01-02 00:00:00"]).str.to_datetime()
    for column in (moments, moments.dt.date(), moments.dt.replace_time_zone("UTC")):
        frame = pl.DataFrame({"user": ["a"], "item": ["x"], "time": column})
        assert triples(read_log(frame).interactions) == [("a", "x", 1704153600000000)]


def test_many_rows_in_many_batches_are_all_read(tmp_path, monkeypatch):
    monkeypatch.setattr("ltocf.data.ingest.log.BATCH_ROWS", 100)
    random = np.random.default_rng(0)
    users, items = random.integers(50, size=5000), random.integers(60, size=5000)
    pl.DataFrame({"user": users, "item": items}).write_csv(tmp_path / "log.csv")
    contents = read_log(tmp_path / "log.csv")
    assert set(ids(contents.interactions)) == set(zip(users.tolist(), items.tolist(), strict=True))
    assert contents.rows == 5000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("user,item\n", "has no rows"),
        ("user,item\na,x\n,y\n", r"row 2: no user id in column 'user'"),
        ("user,item\na,NaN\n", r"row 1: no item id in column 'item'"),
        ("user,item\na,x\nb\n", r"row 2: no item id in column 'item'"),
        ('user,item\n"",x\n', r"row 1: no user id in column 'user'"),
        ("user,item\na,x,extra\n", r"cannot be read \(found more fields"),
        ('user,item\n"a,x\n', "cannot be read"),
        ("who,what\na,x\n", "cannot guess the user column; .* The columns are: 'who', 'what'"),
        ("user what\na x\n", "cannot guess the user column; .* columns are: 'user what'"),
        ("user,item,time\na,x,\n", "row 1: no time in column 'time'"),
        ("user,item,time\na,x,yesterday\n", "cannot read 'yesterday' in column 'time' as a time"),
        (
            "user,item,time\na,x,2024-01-02\nb,x,2024-01-03\nb,y,03/01/2024\n",
            "row 3: time '03/01/2024' is not written like the others in column 'time'",
        ),
        (
            "user,item,time\na,x,1700000000\nb,x,1700000001\nb,y,2024-01-03\n",
            "row 3: time '2024-01-03' is not written like the others",
        ),
    ],
)
def test_a_wrong_text_file_is_one_clear_line(tmp_path, text, message):
    path = write_csv(tmp_path, text)
    with pytest.raises(DataError, match=message) as error:
        read_log(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_wrong_separator_names_the_columns_that_there_are(tmp_path):
    path = write_csv(tmp_path, "user,item\na,x\n")
    with pytest.raises(DataError, match=r"no column 'user' for the user; .* are: 'user,item'"):
        read_log(path, user="user", item="item", separator=";")


def test_a_missing_column_names_those_that_exist(tmp_path):
    path = write_csv(tmp_path, "user,item\na,x\n")
    with pytest.raises(DataError, match=r"no column 'film' for the item; .* are: 'user', 'item'"):
        read_log(path, item="film")
    with pytest.raises(DataError, match="cannot guess the rating column"):
        read_log(path, threshold=3)


def test_one_column_cannot_be_user_and_item_at_once():
    with pytest.raises(DataError, match="one column has two roles"):
        read_log(ROWS, user="item", item="item")


def test_a_threshold_that_no_rating_reaches_is_one_clear_error():
    with pytest.raises(DataError, match=r"no rating in column 'rating' reaches the threshold 9"):
        read_log(ROWS, threshold=9)


def test_a_rating_that_is_no_number_is_an_error_that_names_its_row(tmp_path):
    path = write_csv(tmp_path, "user,item,rating\na,x,5\na,y,good\n")
    with pytest.raises(DataError, match="row 2: 'good' is not a number in column 'rating'"):
        read_log(path, threshold=3)


def test_a_missing_or_strange_file_is_one_clear_error(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv: no such file or folder"):
        read_log(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="Excel files are not read"):
        read_log(write_csv(tmp_path, "x", "log.xlsx"))
    with pytest.raises(DataError, match="cannot read a log from 'int'"):
        read_log(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("cut", [4, 100, -1, -50])
def test_half_written_parquet_is_one_clear_error(tmp_path, cut):
    ROWS.write_parquet(tmp_path / "whole.parquet")
    path = tmp_path / "log.parquet"
    path.write_bytes((tmp_path / "whole.parquet").read_bytes()[:cut])
    with pytest.raises(DataError, match=r"log\.parquet: cannot be read .*half-written") as error:
        read_log(path)
    assert "\n" not in str(error.value)


def test_a_half_written_gzip_is_one_clear_error(tmp_path):
    text = "user,item\n" + "".join(f"u{n},i{n * 7919 % 1000}\n" for n in range(10_000))
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(text.encode())[:-2000])
    with pytest.raises(DataError, match=r"log\.csv\.gz: cannot be read"):
        read_log(path)


def test_a_folder_that_is_split_already_needs_no_reading(tmp_path):
    write_csv(tmp_path, "0 1 2\n", "train.txt")
    write_csv(tmp_path, "0 3\n", "test.txt")
    with pytest.raises(DataError, match="already split; give the folder to 'ltocf train'"):
        read_log(tmp_path)


def test_folders_must_hold_parts_of_one_kind_with_the_same_columns(tmp_path):
    with pytest.raises(DataError, match="holds no CSV, TSV or Parquet file"):
        read_log(tmp_path)
    write_csv(tmp_path, "user,item\na,x\n", "a.csv")
    write_csv(tmp_path, "user,thing\na,x\n", "b.csv")
    with pytest.raises(DataError, match=r"b\.csv: no column 'item' for the item"):
        read_log(tmp_path)
    ROWS.write_parquet(tmp_path / "c.parquet")
    with pytest.raises(DataError, match="mixes Parquet and text"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"user": ["a", None], "item": ["x", "y"]}), "row 2: no user id"),
        (pl.DataFrame({"user": [1.0, 2.5], "item": [1, 2]}), "row 2: user id 2.5 is not a whole"),
        (pl.DataFrame({"user": ["a"], "item": [""]}), "row 1: no item id in column 'item'"),
        (pl.DataFrame({"user": ["a"], "item": [["x"]]}), r"column 'item' is List"),
        (pl.DataFrame({"user": [None], "item": ["x"]}), "row 1: no user id"),
        (pd.DataFrame({"user": [1, None], "item": ["x", "y"]}), "row 2: no user id"),
        (pd.DataFrame({"user": ["a", None], "item": ["x", "y"]}), "row 2: no user id"),
        (pd.DataFrame({"user": ["a", 5], "item": ["x", "y"]}), "column 'user' mixes types"),
        (pl.DataFrame({"user": [], "item": []}), "has no rows"),
    ],
)
def test_a_data_frame_with_missing_or_mixed_ids_is_refused(frame, message):
    with pytest.raises(DataError, match=message) as error:
        read_log(frame)
    assert "\n" not in str(error.value)
