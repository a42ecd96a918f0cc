"""Everybody's list in one file."""

import json
from dataclasses import replace

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import IdMap
from ltocf.errors import ConfigError, DataError
from ltocf.recommend import bulk
from ltocf.recommend.bulk import recommend_all
from ltocf.recommend.recommender import Recommender


@pytest.fixture(scope="module")
def town(hamlet) -> Recommender:
    return Recommender("ltocf", epochs=1, dim=8, negatives=4).fit(hamlet)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(bulk, "PART_USERS", 50)


def everybody(town: Recommender) -> list[str]:
    return town.fitted.seen.user_ids.ids.to_list()


def test_the_file_holds_what_recommend_answers(town, tmp_path):
    seen = []
    report = recommend_all(
        town, tmp_path / "recs.parquet", 5, progress=lambda *done: seen.append(done)
    )
    assert_frame_equal(
        pl.read_parquet(tmp_path / "recs.parquet"), town.recommend(everybody(town), 5)
    )
    assert (report.users, report.rows, report.resumed) == (120, 600, 0)
    assert seen == [("recommending", done, 120) for done in (50, 100, 120)]
    assert [path.name for path in tmp_path.iterdir()] == ["recs.parquet"]


def test_a_csv_holds_the_same(town, tmp_path):
    recommend_all(town, tmp_path / "recs.csv", 2, exclude=[], keep_seen=True)
    read = pl.read_csv(tmp_path / "recs.csv")
    assert (
        read["item"].to_list()
        == town.recommend(everybody(town), 2, keep_seen=True)["item"].to_list()
    )


def interrupt_after_first_part(town: Recommender, output, **options: object) -> None:
    def stop(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recommend_all(town, output, 5, progress=stop, **options)


def test_an_interrupted_job_goes_on_where_it_stopped(town, tmp_path):
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(town, output)
    assert not output.exists()
    assert list((tmp_path / "recs.parquet.parts").glob("000000.*.parquet"))
    report = recommend_all(town, output, 5)
    assert report.resumed == 50
    assert_frame_equal(pl.read_parquet(output), town.recommend(everybody(town), 5))


def test_a_damaged_part_is_made_again(town, tmp_path):
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(town, output)
    (part,) = (tmp_path / "recs.parquet.parts").glob("000000.*.parquet")
    part.write_bytes(part.read_bytes()[:-9])
    assert recommend_all(town, output, 5).resumed == 0
    assert_frame_equal(pl.read_parquet(output), town.recommend(everybody(town), 5))


def test_parts_of_other_options_or_another_model_are_not_taken(town, hamlet, tmp_path):
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(town, output, keep_seen=True)
    with pytest.raises(DataError, match="interrupted job of another run or with other options"):
        recommend_all(town, output, 5)
    other = Recommender("ltocf", epochs=1, dim=8, negatives=4, seed=5).fit(hamlet)
    with pytest.raises(DataError, match="interrupted job of another run"):
        recommend_all(other, output, 5, keep_seen=True)
    assert recommend_all(town, output, 5, overwrite=True).resumed == 0


def renamed(hamlet: Dataset) -> Dataset:
    """The same pairs, of other people."""
    split = hamlet.split
    ids = IdMap(split.train.user_ids.ids.cast(pl.String) + "-of-another-town")
    named = {
        name: replace(getattr(split, name), user_ids=ids) for name in ("train", "valid", "test")
    }
    return replace(hamlet, split=replace(split, **named))


def test_a_job_does_not_go_on_with_other_peoples_lists(hamlet, tmp_path):
    here, there = (Recommender("ease").fit(data) for data in (hamlet, renamed(hamlet)))
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(here, output)
    with pytest.raises(DataError, match="interrupted job of another run"):
        recommend_all(there, output, 5)
    report = recommend_all(there, output, 5, overwrite=True)
    assert report.resumed == 0
    assert_frame_equal(pl.read_parquet(output), there.recommend(everybody(there), 5))


def test_a_job_does_not_go_on_with_a_model_that_differs_in_a_number_only(hamlet, tmp_path):
    one, other = (
        Recommender(
            "blend", members=[{"model": "ease", "weight": 1}, {"model": "itemknn", "weight": w}]
        ).fit(hamlet)
        for w in (1, 0.25)
    )
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(one, output)
    with pytest.raises(DataError, match="interrupted job of another run"):
        recommend_all(other, output, 5)


def test_an_old_file_is_not_replaced_unasked(town, tmp_path):
    output = tmp_path / "recs.parquet"
    output.write_text("precious")
    with pytest.raises(DataError, match="already exists"):
        recommend_all(town, output, 5)
    assert output.read_text() == "precious"
    recommend_all(town, output, 5, overwrite=True)
    assert pl.read_parquet(output).height == 600


def test_wrong_requests_write_nothing(town, tmp_path):
    with pytest.raises(ConfigError, match=r"give one of: .parquet, .csv"):
        recommend_all(town, tmp_path / "recs.xlsx", 5)
    with pytest.raises(ConfigError, match="k = 0"):
        recommend_all(town, tmp_path / "recs.parquet", 0)
    assert not list(tmp_path.iterdir())


def test_the_command_line_writes_everybodys_list(town, ltocf, tmp_path):
    town.save(run := tmp_path / "run")
    output = tmp_path / "recs.parquet"
    code, out, _ = ltocf("recommend", run, "--all-users", "-o", output, "-k", 3, "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 360
    assert pl.read_parquet(output).height == 360
    code, out, err = ltocf("recommend", run, "--all-users")
    assert (code, err) == (2, "error: --all-users needs a file: --output FILE\n")
    code, out, _ = ltocf("recommend", run, "--all-users", "-o", output, "--overwrite")
    assert "1,200 rows for 120 users" in out


def test_lists_may_go_into_a_folder_with_brackets(town, tmp_path):
    """A pattern that stands for other names is never meant by a path."""
    folder = tmp_path / "shop [1]"
    folder.mkdir()
    recommend_all(town, folder / "lists [2].parquet", 3)
    assert pl.read_parquet(folder / "lists [2].parquet", glob=False)["user"].n_unique() == 120
