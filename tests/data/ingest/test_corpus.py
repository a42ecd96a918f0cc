"""Every log of the corpus gives its pairs or its error, and every table comes back as it was."""

import io
import re

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.data.ingest.read_log import read_log
from ltocf.errors import LtocfError

from .corpus import CASES


def test_the_corpus_is_large():
    assert len(CASES) >= 80


@pytest.mark.parametrize("name", CASES)
def test_a_log_gives_its_pairs_or_one_line_that_says_what_is_wrong(name, tmp_path, capfd):
    case = CASES[name]
    path = case.write(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    if case.pairs is None:
        for read in (read_log, lambda *a, **o: prepare(path, tmp_path / "out", Recipe(**o))):
            with pytest.raises(LtocfError, match=case.error) as error:
                read(path, **case.options)
            assert "\n" not in str(error.value)
            assert len(str(error.value)) < 1000
    else:
        pairs = read_log(path, **case.options).interactions
        users, items = pairs.user_ids[pairs.users], pairs.item_ids[pairs.items]
        assert set(zip(users, items, strict=True)) == case.pairs
        if case.times is not None:
            assert pairs.timestamps is not None
            assert (pairs.timestamps - pairs.timestamps[0]).tolist() == case.times
    assert sorted(tmp_path.rglob("*")) == before, "nothing is left behind"
    assert capfd.readouterr().err == ""


ALPHABET = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")
IDS = st.text(ALPHABET, min_size=1, max_size=8).filter(
    lambda id_: id_ not in ("NaN", "nan", "NULL", "null", "None")
)
ROWS = st.lists(st.tuples(IDS, IDS, st.integers(0, 10**7 - 1)), min_size=1, max_size=20)


def as_known(ids: list[str]) -> list[object]:
    """Text files have no types: a column of whole numbers is one of integers."""
    whole = all(re.fullmatch(r"0|-?[1-9][0-9]*", id_) and abs(int(id_)) < 2**63 for id_ in ids)
    return [int(id_) for id_ in ids] if whole else list(ids)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS,
    form=st.sampled_from(["csv", "tsv", "semicolons", "bars"]),
    quoted=st.booleans(),
    mark=st.booleans(),
)
def test_any_table_written_as_text_comes_back_the_same(tmp_path, rows, form, quoted, mark):
    separator = {"csv": ",", "tsv": "\t", "semicolons": ";", "bars": "|"}[form]
    frame = pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")
    out = io.BytesIO(b"\xef\xbb\xbf" if mark else b"")
    out.seek(0, io.SEEK_END)
    frame.write_csv(out, separator=separator, quote_style="always" if quoted else "necessary")
    (tmp_path / "log.csv").write_bytes(out.getvalue())
    _compare(tmp_path, rows, text=True)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_any_table_written_as_parquet_comes_back_the_same(tmp_path, rows):
    frame = pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")
    frame.write_parquet(tmp_path / "log.csv")
    _compare(tmp_path, rows, text=False)


def _compare(directory, rows, *, text):
    prepare(directory / "log.csv", directory / "out", Recipe(split="none"), overwrite=True)
    train = Dataset.load(directory / "out").split.train
    assert train.timestamps is not None
    found = dict(
        zip(
            zip(train.user_ids[train.users], train.item_ids[train.items], strict=True),
            train.timestamps.tolist(),
            strict=True,
        )
    )
    users, items, times = (list(column) for column in zip(*rows, strict=True))
    if text:
        users, items = as_known(users), as_known(items)
    expected: dict[object, int] = {}
    for user, item, time in zip(users, items, times, strict=True):
        expected[user, item] = min(time, expected.get((user, item), time))
    assert found == expected
