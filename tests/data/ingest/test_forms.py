"""Logs as people have them: MovieLens as shipped, encodings, separators, archives, no header."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.data.ingest.read_log import read_log
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError, DataError
from tests.data.ingest.movielens_files import FORMS, MOVIES, RATINGS, write_movielens


def triples(pairs: Interactions) -> set[tuple[object, object, int]]:
    assert pairs.timestamps is not None
    # Moments are kept in microseconds, plain numbers as they are.
    seconds = [time // 1_000_000 if time > 10**14 else time for time in pairs.timestamps.tolist()]
    columns = pairs.user_ids[pairs.users], pairs.item_ids[pairs.items], seconds
    return set(zip(*columns, strict=True))


def pairs_of(pairs: Interactions | None) -> set[tuple[object, object]]:
    assert pairs is not None
    return set(zip(pairs.user_ids[pairs.users], pairs.item_ids[pairs.items], strict=True))


EXPECTED = {(user, movie, time) for user, movie, _, time in RATINGS}
LIKED = {(user, movie) for user, movie, rating, _ in RATINGS if rating >= 4}
MOVIES_FILE = {"ml-100k": "u.item", "ml-1m": "movies.dat", "ml-25m": "movies.csv"}
LIKING = {user for user, _ in LIKED}
DISLIKED = {(u, movie) for u, movie, rating, _ in RATINGS if rating < 4 and u in LIKING}


def make_source(how: str, form: str, tmp_path: Path) -> tuple[Path, Path | None]:
    """The log to give, and the table of items to give with it, if it must be given."""
    folder = tmp_path / form
    log, items = write_movielens(folder, form)
    if how == "folder":
        return folder, None
    if how == "zip":
        with zipfile.ZipFile(tmp_path / f"{form}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, f"{form}/{file.name}")
        return tmp_path / f"{form}.zip", None
    return log, items


@pytest.mark.parametrize("how", ["folder", "zip", "files"])
@pytest.mark.parametrize("form", FORMS)
def test_movielens_works_as_shipped_with_its_titles(form, how, tmp_path):
    source, items = make_source(how, form, tmp_path)
    recipe = Recipe(threshold=4, split="none")
    report = prepare(source, tmp_path / "out", recipe, names=items)
    data = Dataset.load(tmp_path / "out")
    assert report.rows == len(RATINGS), "the first row is not lost"
    assert pairs_of(data.split.train) == LIKED
    assert pairs_of(data.split.unliked) == DISLIKED
    assert {(u, i, t) for u, i, t in EXPECTED if (u, i) in LIKED} == triples(data.split.train)
    assert data.item_names is not None
    titles = dict(zip(data.split.train.item_ids.ids, data.item_names["title"], strict=True))
    assert titles == {movie: title for movie, title, _ in MOVIES}
    said = "\n".join(report.lines())
    assert ("header: none" in said) == (form != "ml-25m")
    assert ("separator: '::'" in said) == (form == "ml-1m")
    assert (f"{MOVIES_FILE[form]}: encoding: latin-1 (found)" in said) == (form != "ml-25m")


def test_ratings_without_a_threshold_all_count_and_that_is_reported(tmp_path):
    log, _ = write_movielens(tmp_path / "ml", "ml-1m")
    contents = read_log(log)
    assert triples(contents.interactions) == EXPECTED
    assert any("every rating counts as a like" in note for note in contents.notes)
    assert not any("like" in note for note in read_log(log, threshold=3).notes)


def test_columns_may_be_numbers(tmp_path):
    (tmp_path / "log.tsv").write_text("978300760\tann\ttea\n978300761\tben\tjazz\n")
    contents = read_log(tmp_path / "log.tsv", user="2", item="3", time="1")
    assert triples(contents.interactions) == {("ann", "tea", 978300760), ("ben", "jazz", 978300761)}
    (tmp_path / "named.csv").write_text("when,who,what\n7,ann,tea\n")
    named = read_log(tmp_path / "named.csv", user="2", item="3", time="1")
    assert named.columns.user == "who"
    with pytest.raises(DataError, match=r"no column '4' for the user; .* 'when', 'who', 'what'"):
        read_log(tmp_path / "named.csv", user="4")


@pytest.mark.parametrize(
    ("text", "user", "item", "time"),
    [
        ("1,20\n2,30\n", "1", "2", None),
        ("1,20,5\n2,30,4\n", "1", "2", None),
        ("1,20,5,978300760\n2,30,4,978300761\n", "1", "2", "4"),
        ("1,20,978300760\n2,30,978300761\n", "1", "2", "3"),
        ("ann,tea,2024-01-02\nben,tea,2024-01-03\n", "1", "2", "3"),
    ],
)
def test_a_file_without_a_header_is_noticed_and_no_row_is_lost(tmp_path, text, user, item, time):
    (tmp_path / "log.csv").write_text(text)
    contents = read_log(tmp_path / "log.csv")
    columns = contents.columns
    assert (columns.user, columns.item, columns.time) == (user, item, time)
    assert contents.rows == 2
    assert any(note.startswith("header: none") for note in contents.notes)


def test_a_header_can_be_denied_or_insisted_on(tmp_path):
    (tmp_path / "text.csv").write_text("ann,tea\nben,jazz\n")
    with pytest.raises(DataError, match="if they are a row of data, pass header=False"):
        read_log(tmp_path / "text.csv")
    contents = read_log(tmp_path / "text.csv", header=False)
    assert pairs_of(contents.interactions) == {("ann", "tea"), ("ben", "jazz")}
    (tmp_path / "numbers.csv").write_text("1,2\nann,tea\n")
    insisted = read_log(tmp_path / "numbers.csv", header=True, user="1", item="2")
    assert pairs_of(insisted.interactions) == {("ann", "tea")}


@pytest.mark.parametrize("separator", ["::", "||", "\t", " ", r"\t", "tab"])
def test_separators_of_any_length_are_taken(tmp_path, separator):
    written = {"tab": "\t", r"\t": "\t"}.get(separator, separator)
    text = 'user,item,time\na,x:y,5\nb,"q,7\n' if len(written) > 1 else "user,item,time\na,x:y,5\n"
    (tmp_path / "log").write_text(text.replace(",", written))
    found = triples(read_log(tmp_path / "log", separator=separator).interactions)
    assert ("a", "x:y", 5) in found
    assert len(found) == text.count("\n") - 1


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", "encoding: utf-16 (found)"),
        ("utf-16-le", "encoding: utf-16-le (found)"),
        ("utf-16-be", "encoding: utf-16-be (found)"),
        ("latin-1", "encoding: latin-1 (found)"),
        ("cp1252", "encoding: cp1252 (found)"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_are_found_and_reported(tmp_path, encoding, said, packed):
    name = "caf\u00e9 \u2019s" if encoding not in ("latin-1",) else "caf\u00e9"
    raw = f"user,item\r\nren\u00e9,{name}\r\nb,tea\r\n".encode(encoding)
    (tmp_path / "log.csv").write_bytes(gzip.compress(raw) if packed else raw)
    contents = read_log(tmp_path / "log.csv")
    assert pairs_of(contents.interactions) == {("rené", name), ("b", "tea")}
    assert contents.notes == (() if said is None else (said,))


def test_a_foreign_letter_far_into_a_file_is_found_too(tmp_path):
    text = "user,item\n" + "".join(f"u{n},i{n}\n" for n in range(200_000)) + "rené,x\n"
    (tmp_path / "log.csv").write_bytes(text.encode("latin-1"))
    assert len(read_log(tmp_path / "log.csv").interactions) == 200_001


def test_a_wrong_or_unknown_encoding_is_one_clear_line(tmp_path):
    (tmp_path / "log.csv").write_bytes("user,item\nrené,x\n".encode("latin-1"))
    with pytest.raises(DataError, match="is not written in ascii; name another with encoding="):
        read_log(tmp_path / "log.csv", encoding="ascii")
    with pytest.raises(ConfigError, match="unknown encoding 'klingon'"):
        read_log(tmp_path / "log.csv", encoding="klingon")


def test_zstandard_in_another_form_is_read(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    text = "1::2::5::978300760\n2::2::4::978300761\n"
    (tmp_path / "ratings.dat.zst").write_bytes(zstandard.compress(text.encode()))
    assert read_log(tmp_path / "ratings.dat.zst").rows == 2


@pytest.mark.parametrize("name", ["log", "log.backup", "events.2024-01-01"])
def test_the_name_of_a_file_does_not_matter(tmp_path, name):
    (tmp_path / name).write_text("user,item\na,x\n")
    assert pairs_of(read_log(tmp_path / name).interactions) == {("a", "x")}
    frame = pl.DataFrame({"user": ["a"], "item": ["x"]})
    frame.write_parquet(tmp_path / f"parquet-{name}")
    assert pairs_of(read_log(tmp_path / f"parquet-{name}").interactions) == {("a", "x")}


def test_a_zip_of_one_log_or_of_parts_is_read(tmp_path):
    for names in (["log.csv"], ["logs/a.csv", "logs/b.csv", "__MACOSX/._a.csv"]):
        with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
            for name in names:
                archive.writestr(name, f"user,item\n{Path(name).stem},x\n")
        users = {user for user, _ in pairs_of(read_log(tmp_path / "log.zip").interactions)}
        assert users == {Path(name).stem for name in names if "MACOSX" not in name}


def test_a_zip_without_a_log_and_a_broken_zip_are_clear_errors(tmp_path):
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("readme.md", "nothing")
    with pytest.raises(DataError, match=r"empty\.zip: holds no CSV"):
        read_log(tmp_path / "empty.zip")
    (tmp_path / "half.zip").write_bytes((tmp_path / "empty.zip").read_bytes()[:40])
    with pytest.raises(DataError, match=r"half\.zip: cannot be read as a zip archive"):
        read_log(tmp_path / "half.zip")


def test_standard_input_is_a_log_like_any_other(tmp_path, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"user;item\na;x\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    assert pairs_of(read_log("-").interactions) == {("a", "x")}


@pytest.mark.parametrize("contents", [b"\x00\x01\x02\x03" * 500, bytes(range(256)) * 20])
def test_a_binary_file_is_one_clear_error(tmp_path, contents):
    (tmp_path / "log").write_bytes(contents)
    with pytest.raises(DataError, match="is neither text nor Parquet"):
        read_log(tmp_path / "log")


@pytest.mark.parametrize("inside", [[], ["deeper"], ["README"], [".hidden.csv"]])
def test_a_folder_of_nothing_is_one_clear_line(tmp_path, inside, ltocf):
    (tmp_path / "folder").mkdir()
    for name in inside:
        path = tmp_path / "folder" / name
        path.mkdir() if name == "deeper" else path.write_text("x")
    code, _, err = ltocf("prepare", tmp_path / "folder", "-o", tmp_path / "out")
    assert code == 2
    assert "holds no CSV, TSV or Parquet file" in err
    assert not (tmp_path / "out").exists()


def test_temporary_files_are_gone_afterwards(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    log, movies = write_movielens(tmp_path / "ml", "ml-1m")
    prepare(log, tmp_path / "out", names=movies)
    assert list((tmp_path / "temporary").iterdir()) == []


BAD = "user,item,time\na,x,1\n,y,2\nb,x,3\nb,y,soon\nc,x,5,what,is,this\nc\nd,x,8\n"


def test_bad_rows_can_be_skipped_and_are_counted_with_the_first_reasons(tmp_path):
    (tmp_path / "log.csv").write_text(BAD)
    with pytest.raises(DataError, match="cannot be read"):
        read_log(tmp_path / "log.csv")
    report = prepare(tmp_path / "log.csv", tmp_path / "out", Recipe(split="none", skip_bad=True))
    assert triples(Dataset.load(tmp_path / "out").split.train) == {
        ("a", "x", 1),
        ("b", "x", 3),
        ("d", "x", 8),
    }
    assert (report.rows, report.skipped) == (7, 4)
    said = "\n".join(report.lines())
    assert "left out: 4 (rows that cannot be read)" in said
    assert "row 2: no user id in column 'user'" in said
    assert "row 4: time 'soon' is not written like the others in column 'time'" in said
    assert "row 5: more fields than columns, such as 'what'" in said
    assert len(report.skipped_reasons) == 3


def test_without_a_header_bad_rows_are_skipped_too(tmp_path):
    (tmp_path / "log.csv").write_text("1,2\n3\n4,5,6\n7,8\n")
    contents = read_log(tmp_path / "log.csv", skip_bad=True)
    assert pairs_of(contents.interactions) == {(1, 2), (7, 8)}
    assert contents.skipped == 2


def test_a_log_of_nothing_but_bad_rows_is_an_error(tmp_path):
    (tmp_path / "log.csv").write_text("user,item\n,x\na,\n")
    with pytest.raises(DataError, match=r"no row can be read; the first: .* no user id"):
        read_log(tmp_path / "log.csv", skip_bad=True)


def test_whole_numbers_that_pandas_holds_as_floats_are_whole_numbers(tmp_path):
    frame = pd.DataFrame({"user": [1.0, 2.0, np.nan], "item": [7.0, 8.0, 9.0]})
    assert pairs_of(read_log(frame[:2]).interactions) == {(1, 7), (2, 8)}
    contents = read_log(frame, skip_bad=True)
    assert (pairs_of(contents.interactions), contents.skipped) == ({(1, 7), (2, 8)}, 1)
    frame[:2].to_csv(tmp_path / "log.csv", index=False)
    assert pairs_of(read_log(tmp_path / "log.csv").interactions) == {(1, 7), (2, 8)}
    (tmp_path / "versions.csv").write_text("user,item\n1,1.0\n2,1.1\n")
    assert pairs_of(read_log(tmp_path / "versions.csv").interactions) == {(1, "1.0"), (2, "1.1")}


def test_everything_said_is_also_in_the_json(tmp_path, ltocf):
    log, movies = write_movielens(tmp_path / "ml", "ml-1m")
    arguments = "prepare", log, "-o", tmp_path / "out", "--items", movies, "--json"
    code, out, _ = ltocf(*arguments)
    assert code == 0
    facts = json.loads(out)
    assert "separator: '::' (found)" in facts["notes"]
    assert facts["split"] == "ratio"
